// ZB-H2 (Qi et al., "Zero Bubble Pipeline Parallelism", ICLR 2024, arXiv 2401.10241): ZB-H1 with
// enough forwards in the warm-up to fill the time until the first input gradient returns. From its
// first action on a device then works without a gap (F = I = W, M >= 2P - 1): the schedule is a
// parallelogram, whose skew alone remains. The price is 2P - 1 activations on every device.
//
// Device d starts (P - 1 - d) hops before the last device and hears back as many hops after it: the
// 2(P - 1 - d) forwards of its warm-up and one more. Its W come 2d micro-batches after their I,
// which keeps every device at the first one's peak and fills its drain.
#include <algorithm>
#include <vector>

#include "pipelines/schedules/schemes.h"

namespace pipelab {

absl::StatusOr<Schedule> MakeZbH2(const SchemeParams& params) {
  Schedule schedule = LoopedPipeline(params);
  const int more = std::max(0, params.micro_batches - params.devices);
  for (int d = 0; d < params.devices; ++d) {
    std::vector<Action> forwards, inputs;
    for (int m = 0; m < params.micro_batches; ++m) {
      forwards.push_back(Forward(d, m));
      inputs.push_back(BackwardInput(d, m));
    }
    const int after = params.devices - 1 - d;  // stages after this one
    schedule.order[d] = SplitOneForwardOneBackward(forwards, inputs,
                                                   /*warm_up=*/after + std::min(after, more),
                                                   /*lag=*/d + std::min(d, more));
  }
  return schedule;
}

}  // namespace pipelab
