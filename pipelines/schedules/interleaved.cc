// Interleaved 1F1B, depth first (Narayanan et al., "Efficient Large-Scale Language Model Training
// on GPU Clusters Using Megatron-LM", SC 2021): V stages a device, micro-batches in groups of P. A
// device runs a group through its first stage, then through its second, and so on, before it takes
// the next group.
//
// Here for any number of micro-batches and larger groups too (MicroBatchGroups): the time is the
// same, the memory grows with the largest group g, to (V-1)g + 2(P-1-d) + 1 stage activations on
// device d. With SchemeParams::forwards_first no backward runs before the last forward, and every
// device holds V M stage activations.
//
// interleaved_merged is Megatron-Core's order of 2025 for experts on several devices
// (overlap_moe_expert_parallel_comm): one more forward in the warm-up, so that each steady forward
// and the backward after it are of other micro-batches and need nothing of one another. They are
// merged into one pass, in which the all-to-alls of each run beside the compute of the other. One
// more stage activation; on one device F0, (F1 B0), (F2 B1), ..., B of the last.
#include <algorithm>
#include <vector>

#include "pipelines/schedules/schemes.h"
#include "tools/base/status_macros.h"

namespace pipelab {

absl::StatusOr<Schedule> MakeInterleavedMerged(const SchemeParams& params) {
  PIPELAB_ASSIGN_OR_RETURN(const std::vector<int> groups, MicroBatchGroups(params));
  const int largest = LargestGroup(params.devices, params.micro_batches, params.group_size);
  Schedule schedule = LoopedPipeline(params);
  schedule.merges_passes = true;
  for (int d = 0; d < params.devices; ++d) {
    const int warm_up = 2 * (params.devices - 1 - d) + (params.virtual_stages - 1) * largest + 1;
    schedule.order[d] =
        OneForwardOneBackward(DepthFirst(params, groups, ActionKind::kForward, d),
                              DepthFirst(params, groups, ActionKind::kBackward, d), warm_up);
  }
  return schedule;
}

absl::StatusOr<Schedule> MakeInterleaved(const SchemeParams& params) {
  PIPELAB_ASSIGN_OR_RETURN(const std::vector<int> groups, MicroBatchGroups(params));
  if (params.virtual_stages == 1) return Make1F1B(params);
  const int devices = params.devices;
  const int largest = LargestGroup(params.devices, params.micro_batches, params.group_size);
  Schedule schedule = LoopedPipeline(params);
  for (int d = 0; d < devices; ++d) {
    const int warm_up = params.forwards_first
                            ? params.virtual_stages * params.micro_batches
                            : 2 * (devices - 1 - d) + (params.virtual_stages - 1) * largest;
    schedule.order[d] =
        OneForwardOneBackward(DepthFirst(params, groups, ActionKind::kForward, d),
                              DepthFirst(params, groups, ActionKind::kBackward, d), warm_up);
  }
  return schedule;
}

}  // namespace pipelab
