// Hanayo (Liu et al., "Hanayo: Harnessing Wave-like Pipeline Parallelism for Enhanced Large Model
// Training Efficiency", SC 2023): W waves, each down and up the devices, so 2W stages a device; one
// copy of the weights.
//
// One wave is Chimera with the up replica's stages renamed as the second half of one model, and in
// slots of equal length (FillUnits) the same argument holds: passes down and passes up have slots
// of different parity on a device, and passes of one direction follow one another every 2P slots,
// of which a unit's P micro-batches take all of one parity. So any P and M are served.
#include "pipelines/schedules/bidirectional.h"
#include "pipelines/schedules/schemes.h"

namespace pipelab {

absl::Status CheckHanayo(const SchemeParams& params) {
  return CheckEven("--virtual_stages", params.virtual_stages,
                   "a wave goes down the devices and up");
}

absl::StatusOr<Schedule> MakeHanayo(const SchemeParams& params) {
  Schedule schedule = ZigZagPipeline(params);
  FillUnits(&schedule);
  return schedule;
}

}  // namespace pipelab
