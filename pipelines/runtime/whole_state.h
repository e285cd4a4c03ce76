// A training's state put together from what its stages hold, and given back to them.
//
//   PIPELAB_ASSIGN_OR_RETURN(TrainingState state, WholeState(target, stages));
//   PIPELAB_RETURN_IF_ERROR(SetWholeState(state, target, other_stages));
//
// `stages` are all copies of all stages, on whatever devices, between steps. A tensor is the first
// copy's, or is put together from the parts of those that shard it, or that divide it as a
// tensor-parallel group; ties between stages have one
// value in all of them.
#ifndef PIPELAB_PIPELINES_RUNTIME_WHOLE_STATE_H_
#define PIPELAB_PIPELINES_RUNTIME_WHOLE_STATE_H_

#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "models/checkpoint/training_state.h"
#include "pipelines/runtime/layer_stage.h"
#include "pipelines/runtime/stage_parameters.h"

namespace pipelab {

// The stages have all of it (CHECKed).
std::vector<float> WholeTensor(const StateEntry& entry, absl::Span<LayerStage* const> stages);

// Its two halves: what the stages have of a tensor, in their order, without parts that repeat an
// earlier one; and of each element the first. `parts` have all of it (CHECKed).
std::vector<ParameterPart> PartsOf(const StateEntry& entry, absl::Span<LayerStage* const> stages);
std::vector<float> PutTogether(const StateEntry& entry, absl::Span<const ParameterPart> parts);
// Whether two parts are the same elements.
bool SameElements(const ParameterPart& a, const ParameterPart& b);

// Gives all stages what they have of a tensor.
absl::Status SetWholeTensor(const StateEntry& entry, absl::Span<const float> whole,
                            absl::Span<LayerStage* const> stages);

// Training steps done. FailedPrecondition where stages have done different numbers of them.
absl::StatusOr<int64_t> StepOf(absl::Span<LayerStage* const> stages);

absl::StatusOr<TrainingState> WholeState(const StateTarget& target,
                                         absl::Span<LayerStage* const> stages);
// Checks all of it before the first stage changes (CheckState).
absl::Status SetWholeState(const TrainingState& state, const StateTarget& target,
                           absl::Span<LayerStage* const> stages);

}  // namespace pipelab

#endif  // PIPELAB_PIPELINES_RUNTIME_WHOLE_STATE_H_
