// What the simulator says of a planner's plan of --model: a line on the step, and its timeline.
//
//   text += PlanTimeline(plan, problem);
#ifndef PIPELAB_EXPERIMENTS_COMMANDS_PLAN_TIMELINE_H_
#define PIPELAB_EXPERIMENTS_COMMANDS_PLAN_TIMELINE_H_

#include <string>

#include "absl/status/statusor.h"
#include "pipelines/planners/plan.h"
#include "pipelines/planners/plan_problem.h"

namespace pipelab {

// The flags' model and cluster have made the problem. A plan that cannot run (tensor parallelism,
// sizes that do not divide) has the reason in the place of a timeline. InvalidArgument and
// FailedPrecondition are those of the flags.
absl::StatusOr<std::string> PlanTimeline(const Plan& plan, const PlanProblem& problem);

}  // namespace pipelab

#endif  // PIPELAB_EXPERIMENTS_COMMANDS_PLAN_TIMELINE_H_
