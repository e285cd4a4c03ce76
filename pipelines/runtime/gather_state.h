// A training's state where its stages are in several processes (whole_state.h has it in one).
//
//   PIPELAB_ASSIGN_OR_RETURN(TrainingState state, GatherState(group, target, stages, limit));
//   PIPELAB_RETURN_IF_ERROR(SpreadState(group, state, target, stages, limit));
//
// `stages` are those of this process; all processes make the same calls. Process 0 has the whole
// state, with the bits that one process would have; a part at a time is on its way, and
// copies are sent once. An error of any process is everybody's, with its rank
// (ProcessGroup::Agree). `limit` is for each of these exchanges.
#ifndef PIPELAB_PIPELINES_RUNTIME_GATHER_STATE_H_
#define PIPELAB_PIPELINES_RUNTIME_GATHER_STATE_H_

#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "kernels/comm/process_group.h"
#include "models/checkpoint/training_state.h"
#include "pipelines/runtime/layer_stage.h"

namespace pipelab {

// At the other processes than 0 without tensors.
absl::StatusOr<TrainingState> GatherState(ProcessGroup& group, const StateTarget& target,
                                          absl::Span<LayerStage* const> stages,
                                          absl::Duration limit);

// Process 0's state to all; what the others pass is not looked at.
absl::Status SpreadState(ProcessGroup& group, const TrainingState& state, const StateTarget& target,
                         absl::Span<LayerStage* const> stages, absl::Duration limit);

// One tensor; every process gets it.
absl::StatusOr<std::vector<float>> GatherTensor(ProcessGroup& group, const StateEntry& entry,
                                                absl::Span<LayerStage* const> stages,
                                                absl::Duration limit);

}  // namespace pipelab

#endif  // PIPELAB_PIPELINES_RUNTIME_GATHER_STATE_H_
