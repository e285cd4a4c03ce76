// For tests: models that are DAGs, of every kind of layer.
#ifndef PIPELAB_MODELS_LAYERS_TEST_GRAPHS_H_
#define PIPELAB_MODELS_LAYERS_TEST_GRAPHS_H_

#include <cstdint>
#include <vector>

#include "models/graph/layer_spec.h"

namespace pipelab {

// About `layers` layers of width 16 on samples of 6 tokens from a vocabulary of 11 (RandomTokens(6,
// 11)), wired by chance: several embeddings, outputs with many consumers, skips, sums, joins; what
// nothing took is joined at the end. The same graph for the same seed.
ModelGraph RandomGraph(int layers, uint64_t seed, double dropout);

// One layer of each kind that is no part of a GPT, with inputs (of other layers, which do not
// exist): sums and joins of one to three, dense layers of each activation, wide and narrow.
std::vector<LayerSpec> JoinLayers();

// A stage for each layer of any graph, by chance, numbered along the edges and without gaps.
std::vector<int> RandomStages(const ModelGraph& graph, int most_stages, uint64_t seed);

}  // namespace pipelab

#endif  // PIPELAB_MODELS_LAYERS_TEST_GRAPHS_H_
