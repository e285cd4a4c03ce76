// The best cut of the layers in line: stages of one device each, as many as pay, none recomputing;
// the least largest stage under the problem's objective, within memory. Exact for this order of the
// layers: for each suffix and number of stages, over all first stages.
#include "absl/time/clock.h"
#include "pipelines/planners/chain_ranges.h"
#include "pipelines/planners/plan_costs.h"
#include "pipelines/planners/planners.h"
#include "tools/base/status_macros.h"

namespace pipelab {

absl::StatusOr<Plan> ChainPlan(const PlanProblem& problem, const PlannerOptions& options) {
  const absl::Time deadline = absl::Now() + options.time_limit;
  PIPELAB_ASSIGN_OR_RETURN(const auto groups, PlanGroups(problem, "chain"));
  PIPELAB_ASSIGN_OR_RETURN(const int most,
                           NumStages(problem, options, static_cast<int>(groups.size())));
  const ChainRanges best = BestRanges(problem, groups, options.stages, most, deadline);
  Plan plan;
  plan.objective = problem.objective;
  plan.lower_bound = SimpleLowerBound(problem, problem.objective);
  if (best.first.empty()) {
    plan.state = best.stopped ? PlanState::kTimeLimit : PlanState::kInfeasible;
    return plan;
  }
  plan = PlanOfRanges(problem, problem.objective, groups, best.first);
  plan.state = PlanState::kOptimal;
  plan.lower_bound = plan.value;
  return plan;
}

}  // namespace pipelab
