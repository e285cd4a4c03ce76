// Networks whose blocks learn locally: each block but the last gets a head with a loss of its own,
// and takes what comes from the block before as data, without a gradient back. So a pipeline of the
// blocks sends activations only (PPLL, arXiv 2411.12780; heads as in Belilovsky et al., "Decoupled
// Greedy Learning of CNNs", ICML 2020).
//
//   PIPELAB_ASSIGN_OR_RETURN(LocalModel local,
//                            WithLocalHeads(graph, /*cuts=*/{6, 12}, LocalHead::kLinear));
//   local.stage_of_layer        // three blocks, a stage each
//
// A serial trainer on such a graph is the local-learning loop with detached cuts. No block waits
// for the step of another, so one after another and as a pipeline give the same numbers.
#ifndef PIPELAB_MODELS_ZOO_LOCAL_HEADS_H_
#define PIPELAB_MODELS_ZOO_LOCAL_HEADS_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "models/graph/layer_spec.h"

namespace pipelab {

enum class LocalHead : uint8_t {
  kLinear,       // mean over rows, then a classifier; of a language model, its own head, untied
  kConvolution,  // "1c2f": 3x3 convolution, norm, ReLU, mean, a dense layer of 128, a classifier
};

struct LocalModel {
  ModelGraph graph;
  std::vector<int> stage_of_layer;  // a block each
  std::vector<int> losses;          // [block] its loss's layer
  std::vector<int> layer_of;        // [layer] the model's own; -1: of a head
};

// "linear", "convolution".
const char* LocalHeadName(LocalHead kind);
absl::StatusOr<LocalHead> FindLocalHead(absl::string_view name);

// `cuts`: the first layer of each block but the first, ascending. InvalidArgument names the cut and
// what is wrong with it: no layer, a last layer of a block whose output does not go on, or a layer
// that would get no gradient; a model with several losses or without a classifier or a language
// model's head; and for kConvolution, rows that are no square image.
absl::StatusOr<LocalModel> WithLocalHeads(const ModelGraph& graph, absl::Span<const int> cuts,
                                          LocalHead kind);

// Layer `layer` of the graph, and the head of a block that ends with it; for the head's cost.
absl::StatusOr<ModelGraph> LocalHeadGraph(const ModelGraph& graph, int layer, LocalHead kind);

// [layer] The first layer that a block that ends with this one may begin with, so that each of its
// layers gets a gradient; behind the layer itself where no head can stand on it, for nothing takes
// its output.
std::vector<int> FirstLayersOfBlocks(const ModelGraph& graph);

}  // namespace pipelab

#endif  // PIPELAB_MODELS_ZOO_LOCAL_HEADS_H_
