// The collectives of one device's instruction list, resolved: modules and devices instead of
// numbers. Part of the device plan (device_plan.h).
//
//   PIPELAB_ASSIGN_OR_RETURN(CollectivePlan c, PlanCollective(program, device, held, instruction));
//
// InvalidArgument when there is no such collective, or the device holds none of its members.
#ifndef PIPELAB_PIPELINES_RUNTIME_COLLECTIVE_PLAN_H_
#define PIPELAB_PIPELINES_RUNTIME_COLLECTIVE_PLAN_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "pipelines/ir/program.h"
#include "pipelines/runtime/held_stages.h"
#include "pipelines/runtime/stage_module.h"

namespace pipelab {

enum class CollectiveKind : uint8_t { kReduce, kReduceScatter, kGather, kNorm };

struct CollectivePlan {
  CollectiveKind kind = CollectiveKind::kReduce;
  std::string parameter;                      // of a reduction
  std::vector<StageModule*> modules;          // the local members, in member order
  std::vector<SharedParameters*> parameters;  // theirs; of a norm none
  std::vector<NormShare> shares;              // of a norm: theirs
  std::vector<int> devices;                   // of all members, ascending, each once
  // What comes after it of the stage's experts, among those that have the same: one or none.
  std::vector<CollectivePlan> experts;
};

// For kReduce, kGather, kNorm and kRelease.
absl::StatusOr<CollectivePlan> PlanCollective(const Program& program, int device,
                                              const HeldStages& held, const Instruction& i);

}  // namespace pipelab

#endif  // PIPELAB_PIPELINES_RUNTIME_COLLECTIVE_PLAN_H_
