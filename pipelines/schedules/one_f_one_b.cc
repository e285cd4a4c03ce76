// 1F1B with a flush (PipeDream-flush, Narayanan et al., ICML 2021; DAPPLE, Fan et al., PPoPP 2021):
// a device runs just enough forwards to keep the pipeline busy, then a forward and a backward in
// turn, so that at most P - d micro-batches are in flight on device d.
#include <vector>

#include "pipelines/schedules/schemes.h"

namespace pipelab {

absl::StatusOr<Schedule> Make1F1B(const SchemeParams& params) {
  Schedule schedule = LoopedPipeline(params);
  for (int d = 0; d < params.devices; ++d) {
    std::vector<Action> forwards, backwards;
    for (int m = 0; m < params.micro_batches; ++m) {
      forwards.push_back(Forward(d, m));
      backwards.push_back(Backward(d, m));
    }
    schedule.order[d] = OneForwardOneBackward(forwards, backwards, params.devices - 1 - d);
  }
  return schedule;
}

}  // namespace pipelab
