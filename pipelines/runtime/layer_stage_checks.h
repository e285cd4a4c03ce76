// What LayerStage refuses, apart from its code: stages that cannot be, actions of another kind.
// Private to the target.
#ifndef PIPELAB_PIPELINES_RUNTIME_LAYER_STAGE_CHECKS_H_
#define PIPELAB_PIPELINES_RUNTIME_LAYER_STAGE_CHECKS_H_

#include <cstddef>
#include <initializer_list>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "pipelines/runtime/layer_stage.h"

namespace pipelab {

// FailedPrecondition: "2F3 comes again ...".
absl::Status Refuse(const Action& a, absl::string_view why);

// The action is one of these kinds, and of one of the stage's slices.
absl::Status CheckAction(const Action& a, std::initializer_list<ActionKind> kinds,
                         size_t num_slices);

// The partition has the stage, the samples divide among the group.
absl::Status CheckStageSizes(const ModelPartition& partition, int stage,
                             const LayerStageOptions& options);

// The stage's token slices; the whole, where there is one. InvalidArgument when their lengths are
// not those of the model's samples, or a layer does not know slices.
absl::StatusOr<std::vector<TokenSlice>> SlicesOf(const ModelGraph& graph,
                                                 const LayerStageOptions& options);

}  // namespace pipelab

#endif  // PIPELAB_PIPELINES_RUNTIME_LAYER_STAGE_CHECKS_H_
