// What a search may vary of a scheme.
//
//   for (const SchemeParams& params : Variants(scheme, {/*devices=*/8, /*micro_batches=*/32})) {
//     NumStages(scheme.name, params)   // into which the model must be cut; then MakeSchedule
//   }
#ifndef PIPELAB_PIPELINES_SCHEDULES_VARIANTS_H_
#define PIPELAB_PIPELINES_SCHEDULES_VARIANTS_H_

#include <limits>
#include <vector>

#include "pipelines/schedules/catalog.h"

namespace pipelab {

struct VariantLimits {
  int max_stages = std::numeric_limits<int>::max();  // the model's layers
  // No group of micro-batches has fewer than P, which Megatron-LM's interleaved schedule asks: M is
  // a multiple of the group's size, or at least P are left.
  bool full_groups = false;
  // Ways that run each micro-batch in two halves: the schedule then has twice as many.
  bool halves = false;
  // Every number of stages a device from this one up to max_stages, and groups of every size below
  // P; EveryGroupSize has those above it. 0: some.
  int least_virtual_stages = 0;
};

// The ways to run the scheme with these sizes (and recompute, groups and times as they are), all of
// which MakeSchedule makes; its default way first, where that is among them. Empty where the scheme
// does not serve the sizes, or has no way within the limits. In turn:
//   stages a device     2, 3, 4, 6, 8, 12 and 16 (or every number that limits say) that the scheme
//                       serves, where it has no number of its own (kVirtualStages) and `sizes` none
//   groups (kGroupSize) P and 2P micro-batches, where `sizes` has none; not of a stage graph, which
//                       is the caller's
//   replicas            every even number that divides P, where `sizes` has none
//   concatenation       each, of two replicas
//   token slices        2, 4, 8, 16, where `sizes` has none
//   updates             after P micro-batches, and after all
std::vector<SchemeParams> Variants(const Scheme& scheme, const SchemeParams& sizes,
                                   const VariantLimits& limits = {});

// P micro-batches (0) and 2P.
std::vector<int> SomeGroupSizes(const SchemeParams& sizes);
// Sizes of groups that part the micro-batches in different ways (MicroBatchGroups), from 0, those
// first whose largest group is smallest. Of more than 64 micro-batches those that divide them, with
// 2P. `full_groups`: as in VariantLimits, so that P need not be among them.
std::vector<int> EveryGroupSize(SchemeParams sizes, bool full_groups);

}  // namespace pipelab

#endif  // PIPELAB_PIPELINES_SCHEDULES_VARIANTS_H_
