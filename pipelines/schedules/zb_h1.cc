// ZB-H1 (Qi et al., "Zero Bubble Pipeline Parallelism", ICLR 2024, arXiv 2401.10241): 1F1B with
// backwards split into their input gradient (I), which the stage before waits for, and their weight
// gradient (W), which nobody waits for. Device d puts its W off by d micro-batches: every device
// then holds 1F1B's peak of P activations, and the late W fill the drain. The bubble is
// (P - 1)(F + I - W), against 1F1B's (P - 1)(F + I + W).
#include <vector>

#include "pipelines/schedules/schemes.h"

namespace pipelab {

absl::StatusOr<Schedule> MakeZbH1(const SchemeParams& params) {
  Schedule schedule = LoopedPipeline(params);
  for (int d = 0; d < params.devices; ++d) {
    std::vector<Action> forwards, inputs;
    for (int m = 0; m < params.micro_batches; ++m) {
      forwards.push_back(Forward(d, m));
      inputs.push_back(BackwardInput(d, m));
    }
    schedule.order[d] =
        SplitOneForwardOneBackward(forwards, inputs, /*warm_up=*/params.devices - 1 - d, /*lag=*/d);
  }
  return schedule;
}

}  // namespace pipelab
