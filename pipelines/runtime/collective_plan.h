// The collectives of one device's instruction list, resolved: modules and devices instead of
// numbers. Part of the device plan (device_plan.h).
//
//   PIPELAB_ASSIGN_OR_RETURN(ReducePlan reduce, PlanReduce(program, device, held, instruction));
//
// InvalidArgument when there is no such reduction, or the device holds none of its members.
#ifndef PIPELAB_PIPELINES_RUNTIME_COLLECTIVE_PLAN_H_
#define PIPELAB_PIPELINES_RUNTIME_COLLECTIVE_PLAN_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "pipelines/ir/program.h"
#include "pipelines/runtime/held_stages.h"
#include "pipelines/runtime/stage_module.h"

namespace pipelab {

struct ReducePlan {
  std::string parameter;
  std::vector<StageModule*> modules;  // the local members, in member order
  std::vector<int> devices;           // of all members, ascending, each once
};

absl::StatusOr<ReducePlan> PlanReduce(const Program& program, int device, const HeldStages& held,
                                      const Instruction& i);

}  // namespace pipelab

#endif  // PIPELAB_PIPELINES_RUNTIME_COLLECTIVE_PLAN_H_
