// DAPPLE (Fan et al., PPoPP 2021): a synchronous pipeline of consecutive stages, each with copies
// that share every micro-batch, on devices in their order; the shortest batch, with transfers
// beside compute and the gradients' sums on the network levels that the copies span. Stage i of S
// runs 1F1B with S - i micro-batches in flight, and recomputes where it does not fit in memory
// otherwise.
#include "absl/time/clock.h"
#include "pipelines/planners/chain_search.h"
#include "pipelines/planners/plan_costs.h"
#include "pipelines/planners/planners.h"
#include "tools/base/status_macros.h"

namespace pipelab {

absl::StatusOr<Plan> DapplePlan(const PlanProblem& problem, const PlannerOptions& options) {
  PIPELAB_RETURN_IF_ERROR(CheckForChainSearch(problem, "dapple"));
  ChainSearchOptions search_options;
  search_options.copies = true;
  ChainSearch search(problem, search_options, absl::Now() + options.time_limit);
  search.Run();
  Plan plan;
  plan.objective = PlanObjective::kBatchTime;
  plan.stages = search.stages();
  plan.lower_bound = search.LowerBound();
  if (plan.has_plan()) plan.value = PlanValue(problem, plan.objective, plan.stages);
  SetState(search.complete(), search.timed_out(), &plan);
  return plan;
}

}  // namespace pipelab
