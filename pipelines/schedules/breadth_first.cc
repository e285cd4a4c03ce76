// Breadth-first looped pipeline (Lamy-Poirier, MLSys 2023): V stages a device, and all
// micro-batches run through an earlier stage of a device before its next one. The parameters of a
// stage are needed once a pass, which suits sharded data parallelism.
#include "pipelines/schedules/schemes.h"

namespace pipelab {

absl::StatusOr<Schedule> MakeBreadthFirst(const SchemeParams& params) {
  Schedule schedule = LoopedPipeline(params);
  const int devices = params.devices;
  for (int d = 0; d < devices; ++d) {
    for (int chunk = 0; chunk < params.virtual_stages; ++chunk) {
      for (int m = 0; m < params.micro_batches; ++m) {
        schedule.order[d].push_back(Forward(chunk * devices + d, m));
      }
    }
    for (int chunk = params.virtual_stages - 1; chunk >= 0; --chunk) {
      for (int m = 0; m < params.micro_batches; ++m) {
        schedule.order[d].push_back(Backward(chunk * devices + d, m));
      }
    }
  }
  return schedule;
}

}  // namespace pipelab
