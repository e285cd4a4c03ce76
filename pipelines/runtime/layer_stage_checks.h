// What LayerStage refuses, apart from its code: stages that cannot be, actions of another kind.
// Private to the target.
#ifndef PIPELAB_PIPELINES_RUNTIME_LAYER_STAGE_CHECKS_H_
#define PIPELAB_PIPELINES_RUNTIME_LAYER_STAGE_CHECKS_H_

#include <initializer_list>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "pipelines/runtime/layer_stage.h"

namespace pipelab {

// FailedPrecondition: "2F3 comes again ...".
absl::Status Refuse(const Action& a, absl::string_view why);

// The action is one of these kinds and has no slices.
absl::Status CheckAction(const Action& a, std::initializer_list<ActionKind> kinds);

// The partition has the stage, the samples divide among the group, there is one slice.
absl::Status CheckStageSizes(const ModelPartition& partition, int stage,
                             const LayerStageOptions& options);

}  // namespace pipelab

#endif  // PIPELAB_PIPELINES_RUNTIME_LAYER_STAGE_CHECKS_H_
