// BitPipe (Wu et al., "BitPipe: Bidirectional Interleaved Pipeline Parallelism for Accelerating
// Large Models Training", 2024): Chimera's two directions, each a V of two stages per device.
//
// The down replica has stages d and 2P-1-d on device d, the up replica P-1-d and P+d. In slots of
// equal length (FillUnits), stages d and P+d have one parity on a device and P-1-d and 2P-1-d the
// other (P is even); forwards of d end before those of P+d begin, and so on for all pairs: no two
// actions share a slot. That is the paper's order: 3P/2 + min(d, P-1-d) forwards, then one forward
// and one backward in turn, then backwards.
//
// The authors' code reduces the gradients of a device's second virtual stages before its last
// backward (on middle devices after it) and then those of the first. Eager reductions do that and a
// little more: Lower puts each where the stage's last backward on any device is over.
#include "pipelines/schedules/bidirectional.h"
#include "pipelines/schedules/schemes.h"

namespace pipelab {

absl::StatusOr<Schedule> MakeBitPipe(const SchemeParams& params) {
  Schedule schedule = ZigZagPipeline(params);
  AddUpwardReplica(&schedule);
  FillUnits(&schedule);
  schedule.eager_reductions = true;
  return schedule;
}

}  // namespace pipelab
