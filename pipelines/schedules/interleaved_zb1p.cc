// Interleaved ZB-1P (Qi et al., "Zero Bubble Pipeline Parallelism", ICLR 2024, arXiv 2401.10241; in
// practice PyTorch's ScheduleInterleavedZeroBubble): interleaved 1F1B over V stages a device, with
// the backward split as in ZB-H1. Half of the interleaved warm-up on the way down suffices, because
// an input gradient returns in I and not in I + W; the W that device d puts off by d
// stage passes fill its drain.
//
// Micro-batches go in groups (MicroBatchGroups) as there. Fewer than P micro-batches wait for one
// another. Peak (V-1)g + P for a largest group of g.
#include <algorithm>
#include <vector>

#include "pipelines/schedules/guided_order.h"
#include "pipelines/schedules/schemes.h"
#include "tools/base/status_macros.h"

namespace pipelab {

int HeldInInterleavedZb1p(const SchemeParams& params) {
  const absl::StatusOr<std::vector<int>> groups = MicroBatchGroups(params);
  const int largest =
      groups.ok() ? *std::max_element(groups->begin(), groups->end()) : params.micro_batches;
  return (params.virtual_stages - 1) * largest + params.devices;
}

absl::StatusOr<Schedule> MakeInterleavedZb1p(const SchemeParams& params) {
  if (!params.times.forward.empty()) {
    const Schedule& published = *params.for_equal_times;
    return BestOrder(PassLengths::Of(params), HeldInInterleavedZb1p(params), {published},
                     {WithoutWeights(published)}, params.limits);
  }
  PIPELAB_ASSIGN_OR_RETURN(const std::vector<int> groups, MicroBatchGroups(params));
  const int largest = LargestGroup(params.devices, params.micro_batches, params.group_size);
  Schedule schedule = LoopedPipeline(params);
  for (int d = 0; d < params.devices; ++d) {
    const int warm_up = (params.virtual_stages - 1) * largest + params.devices - 1 - d;
    schedule.order[d] = SplitOneForwardOneBackward(
        DepthFirst(params, groups, ActionKind::kForward, d),
        DepthFirst(params, groups, ActionKind::kBackwardInput, d), warm_up, /*lag=*/d);
  }
  return schedule;
}

}  // namespace pipelab
