// Recomputation in gaps: where a device would wait, it rebuilds activations for a later backward
// (Liu et al., "Mario: Near Zero-cost Activation Checkpointing in Pipeline Parallelism", PPoPP
// 2025).
//
//   Schedule early =
//       RecomputeInGaps(schedule, PassLengths::Unit(schedule.num_stages()), /*ahead=*/1);
//
// The order of all else stays. A recompute moves only into a gap that is as long as it is, so for
// these lengths nothing begins later than before. At most `ahead` rebuilt activations of a device
// are there before their place in the given order: that many stage activations more memory at the
// most. O(actions) and, in each gap, the way to the next recompute.
#ifndef PIPELAB_PIPELINES_SCHEDULES_EARLY_RECOMPUTE_H_
#define PIPELAB_PIPELINES_SCHEDULES_EARLY_RECOMPUTE_H_

#include "pipelines/ir/schedule.h"
#include "pipelines/schedules/guided_order.h"

namespace pipelab {

// `schedule` is valid and has one device for each stage of a replica. Its edges lead from a stage
// to the next one, or cost no hop.
Schedule RecomputeInGaps(Schedule schedule, const PassLengths& lengths, int ahead);

}  // namespace pipelab

#endif  // PIPELAB_PIPELINES_SCHEDULES_EARLY_RECOMPUTE_H_
