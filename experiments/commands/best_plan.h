// plan --planner=best: the plans of all planners under one limit, and the one with the shortest
// batch by one price for all.
//
//   PIPELAB_ASSIGN_OR_RETURN(const BestPlan best, FindBestPlan(problem, options, &simulator));
//   best.plan.planner, best.table
#ifndef PIPELAB_EXPERIMENTS_COMMANDS_BEST_PLAN_H_
#define PIPELAB_EXPERIMENTS_COMMANDS_BEST_PLAN_H_

#include <string>

#include "absl/status/statusor.h"
#include "experiments/commands/plan_timeline.h"
#include "pipelines/planners/plan.h"
#include "pipelines/planners/plan_problem.h"
#include "pipelines/planners/planners.h"

namespace pipelab {

struct BestPlan {
  Plan plan;          // `planner` is who found it; without stages where nobody did
  std::string table;  // a line a planner: its batch's time, or why it has none
};

// Each planner gets an equal part of what is left of the time limit; without one, five seconds, and
// graphpipe the steps that it counts. Plans are judged by the
// simulated step (`simulator` of a --model), else by the checker: as stages of a graph
// (graph_batch_time), or by the problem's own objective where that is the largest load or devices
// differ in speed. InvalidArgument where no planner takes the problem and options.
absl::StatusOr<BestPlan> FindBestPlan(const PlanProblem& problem, const PlannerOptions& options,
                                      const PlanSimulator* simulator);

}  // namespace pipelab

#endif  // PIPELAB_EXPERIMENTS_COMMANDS_BEST_PLAN_H_
