// Whether devices that have parts of the tokens can compute a model, and which parts these are.
//
//   PIPELAB_RETURN_IF_ERROR(CheckContextParallel(graph, split, "C"));
//   ContextPartOf(graph, split.context, /*part=*/1);
#ifndef PIPELAB_MODELS_GRAPH_CONTEXT_PARALLEL_H_
#define PIPELAB_MODELS_GRAPH_CONTEXT_PARALLEL_H_

#include <cstdint>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "models/graph/layer_spec.h"

namespace pipelab {

// Balanced where some layer has a causal mask.
ContextPart ContextPartOf(const ModelGraph& graph, int64_t parts, int64_t part);

// InvalidArgument naming the option and a layer that cannot be computed so, or whose tokens the
// parts do not divide ("C=3: twice it must divide the 16 tokens of layer "embedding", for a causal
// mask; the nearest that does is 2"), or, where heads are exchanged, whose heads they do not
// divide, those of keys too; or, with sequence parallelism, what T does not divide.
absl::Status CheckContextParallel(const ModelGraph& graph, TensorParallel split,
                                  absl::string_view option = "--context_parallel");

}  // namespace pipelab

#endif  // PIPELAB_MODELS_GRAPH_CONTEXT_PARALLEL_H_
