// GPipe (Huang et al., NeurIPS 2019): all forwards, then all backwards.
//
// The paper's picture runs the backwards in reverse order. Here both passes run in micro-batch
// order: time and memory are the same, and gradients add up in the order in which serial training
// adds them.
#include "pipelines/schedules/schemes.h"

namespace pipelab {

absl::StatusOr<Schedule> MakeGPipe(const SchemeParams& params) {
  Schedule schedule = LoopedPipeline(params);
  for (int d = 0; d < params.devices; ++d) {
    for (int m = 0; m < params.micro_batches; ++m) schedule.order[d].push_back(Forward(d, m));
    for (int m = 0; m < params.micro_batches; ++m) schedule.order[d].push_back(Backward(d, m));
  }
  return schedule;
}

}  // namespace pipelab
