// GEMS (Jain et al., "GEMS: GPU-enabled memory-aware model-parallelism system for distributed DNN
// training", SC 2020): two replicas of the model, one pipeline down the devices and one up, that
// take micro-batches in turn.
//
// The backward of a micro-batch begins at the end of its pipeline. That is where the next
// micro-batch, of the other replica, begins. Each device runs its forward right after the backward,
// so two micro-batches are under way and a device holds the activations of one. With F = 1 and
// B = 2 a micro-batch follows the one before after 2P + 1, and a device works 3 of these. In the
// long run the bubble is (P - 1) / (P + 1/2), as in Chimera's paper (Li and Hoefler, SC 2021).
#include "absl/strings/str_cat.h"
#include "pipelines/schedules/bidirectional.h"
#include "pipelines/schedules/schemes.h"
#include "tools/base/status_macros.h"

namespace pipelab {

absl::Status CheckGems(const SchemeParams& params) {
  PIPELAB_RETURN_IF_ERROR(
      CheckEven("--devices", params.devices, "else both copies of a stage are on one device"));
  if (params.micro_batches >= 2) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("--micro_batches=", params.micro_batches,
                   ": each of the two replicas takes one; use at least 2"));
}

absl::StatusOr<Schedule> MakeGems(const SchemeParams& params) {
  Schedule schedule = LoopedPipeline(params);
  AddUpwardReplica(&schedule);
  for (int m = 0; m < params.micro_batches; ++m) {
    schedule.placement.replica_of_micro_batch[m] = m % 2;
  }
  for (int d = 0; d < params.devices; ++d) {
    const auto stage = [&](int m) { return m % 2 == 0 ? d : params.devices - 1 - d; };
    schedule.order[d].push_back(Forward(stage(0), 0));
    for (int m = 0; m < params.micro_batches; ++m) {
      schedule.order[d].push_back(Backward(stage(m), m));
      if (m + 1 < params.micro_batches) schedule.order[d].push_back(Forward(stage(m + 1), m + 1));
    }
  }
  return schedule;
}

}  // namespace pipelab
