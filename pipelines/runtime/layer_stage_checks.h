// What LayerStage refuses, apart from its code: stages that cannot be, actions of another kind.
// Private to the target.
#ifndef PIPELAB_PIPELINES_RUNTIME_LAYER_STAGE_CHECKS_H_
#define PIPELAB_PIPELINES_RUNTIME_LAYER_STAGE_CHECKS_H_

#include <initializer_list>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "models/graph/layer_spec.h"
#include "pipelines/runtime/layer_stage.h"

namespace pipelab {

// FailedPrecondition: "2F3 comes again ...".
absl::Status Refuse(const Action& a, absl::string_view why);

// The action is one of these kinds and has no slices.
absl::Status CheckAction(const Action& a, std::initializer_list<ActionKind> kinds);

// The range lies in the graph, the samples divide among the group, there is one slice.
absl::Status CheckStageSizes(const ModelGraph& graph, int begin, int end,
                             const LayerStageOptions& options);

// The layers [begin, end) each take the one before; the last of the graph, and no other, is a loss.
absl::Status CheckStageChain(const ModelGraph& graph, int begin, int end);

}  // namespace pipelab

#endif  // PIPELAB_PIPELINES_RUNTIME_LAYER_STAGE_CHECKS_H_
