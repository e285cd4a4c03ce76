// Devices that share all their stages and run one list: the groups in which Lower can put a
// collective before the same action of all members. Lower's own.
//
//   PIPELAB_RETURN_IF_ERROR(CheckSpmdGroups(schedule, options));
//   for (const SpmdGroup& group : MakeSpmdGroups(schedule, options)) { ... }
#ifndef PIPELAB_PIPELINES_IR_SPMD_GROUPS_H_
#define PIPELAB_PIPELINES_IR_SPMD_GROUPS_H_

#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "pipelines/ir/program.h"
#include "pipelines/ir/sharding.h"

namespace pipelab {

// One of their sharing sets (ir/sharding.h).
struct SpmdGroup {
  std::vector<int> devices;                // two or more, ascending
  std::vector<StageRun> weights;           // where values are sharded
  std::vector<int32_t> weights_by_end;     // indices
  std::vector<StageRun> gradients_by_end;  // where gradients are sharded
};

// InvalidArgument naming a stage whose devices have different lists, or whose replicas have groups
// of different size.
absl::Status CheckSpmdGroups(const Schedule& schedule, const LoweringOptions& options);
// What a schedule with steps in its order cannot have: other copies than a group with one list.
absl::Status CheckOwnSteps(const Schedule& schedule, const LoweringOptions& options);

// For schedules that pass CheckSpmdGroups.
std::vector<SpmdGroup> MakeSpmdGroups(const Schedule& schedule, const LoweringOptions& options);

}  // namespace pipelab

#endif  // PIPELAB_PIPELINES_IR_SPMD_GROUPS_H_
