// For tests: a small net of every kind in models/zoo that trains.
#ifndef PIPELAB_MODELS_LAYERS_TEST_NETS_H_
#define PIPELAB_MODELS_LAYERS_TEST_NETS_H_

#include <vector>

#include "models/graph/layer_spec.h"
#include "models/specs/dense_spec.h"

namespace pipelab {

// BERT with padding and masked targets, T(L,H,A) with tied embeddings and an encoder that every
// decoder layer reads, DLRM, CANDLE-Uno, GraphPipe's case study, and an MMT of names and pictures.
// Widths are small and of no vector's length. The dropout is that of the Transformers.
// RandomData(TestFieldsOf(graph)) fits each. `activation` is that of DLRM's and CANDLE-Uno's dense
// layers.
std::vector<ModelGraph> SmallNets(double dropout, Activation activation);

}  // namespace pipelab

#endif  // PIPELAB_MODELS_LAYERS_TEST_NETS_H_
