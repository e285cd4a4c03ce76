// Whether devices that divide the experts of a model's layers can compute it.
//
//   PIPELAB_RETURN_IF_ERROR(CheckExpertParallel(graph, split, /*copies=*/16, "E"));
#ifndef PIPELAB_MODELS_GRAPH_EXPERT_PARALLEL_H_
#define PIPELAB_MODELS_GRAPH_EXPERT_PARALLEL_H_

#include <cstdint>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "models/graph/layer_spec.h"

namespace pipelab {

// How many routed experts E devices divide; 0: the layer has none.
int64_t RoutedExperts(const LayerSpec& layer);

// `copies`: devices that have the same part of a stage's other parameters. InvalidArgument naming
// the option and a layer whose experts it does not divide ("E=3: must divide the 8 experts of layer
// "block0/experts"; the nearest that does is 2"), the copies, or what whole experts need.
absl::Status CheckExpertParallel(const ModelGraph& graph, TensorParallel split, int64_t copies,
                                 absl::string_view option = "--expert_parallel");

}  // namespace pipelab

#endif  // PIPELAB_MODELS_GRAPH_EXPERT_PARALLEL_H_
