// The plan with the shortest batch, all priced alike: of one planner's plans (--objective=step), or
// of those of all planners under one time limit (--planner=best).
//
//   PIPELAB_ASSIGN_OR_RETURN(const BestPlan best,
//                            FindBestPlan("best", problem, options, &simulator));
//   best.plan.planner, best.table
#ifndef PIPELAB_EXPERIMENTS_PLAN_COMMANDS_BEST_PLAN_H_
#define PIPELAB_EXPERIMENTS_PLAN_COMMANDS_BEST_PLAN_H_

#include <string>

#include "absl/status/statusor.h"
#include "experiments/plan_commands/plan_timeline.h"
#include "pipelines/planners/plan.h"
#include "pipelines/planners/plan_problem.h"
#include "pipelines/planners/planners.h"

namespace pipelab {

struct BestPlan {
  Plan plan;          // `planner` is who found it; without stages where nobody did
  std::string table;  // a line a planner: its batch's time, or why it has none
};

// `planner`: a name, or "best" for all. Each planner gets an equal part of what is left of the time
// limit; without one, five seconds, and graphpipe the steps that it counts. Plans are judged by the
// simulated step (`simulator` of a --model), else by the checker: as stages of a graph
// (graph_batch_time), or by the problem's own objective where that is the largest load or devices
// differ in speed. With a simulator a planner that can is asked for several plans: graphpipe for
// those with ever longer stages and less to fill and drain, uniform, gpipe and chain for every
// number of stages that divides the devices. InvalidArgument where no planner takes the problem and
// options.
absl::StatusOr<BestPlan> FindBestPlan(const std::string& planner, const PlanProblem& problem,
                                      const PlannerOptions& options, PlanSimulator* simulator);

}  // namespace pipelab

#endif  // PIPELAB_EXPERIMENTS_PLAN_COMMANDS_BEST_PLAN_H_
