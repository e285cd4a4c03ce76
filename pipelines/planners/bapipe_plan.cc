// BaPipe (Zhao et al., 2020): consecutive stages of balanced time on devices of any speeds, in
// their order, one device per stage; and the schedule, which is chosen with them:
//
//   1F1B   S - i micro-batches in flight at stage i of S; transfers stand between passes
//   2F2B   two micro-batches in turn, so that transfers run beside compute; twice as many in flight
//
// The shortest batch that fits in memory; stages recompute where they do not fit otherwise. Devices
// may be left out. (The paper balances the stages' times and then looks at transfers and memory;
// here one search has all three.)
#include "absl/time/clock.h"
#include "pipelines/planners/chain_search.h"
#include "pipelines/planners/plan_costs.h"
#include "pipelines/planners/planners.h"
#include "tools/base/status_macros.h"

namespace pipelab {

absl::StatusOr<Plan> BaPipePlan(const PlanProblem& problem, const PlannerOptions& options) {
  PIPELAB_RETURN_IF_ERROR(CheckForChainSearch(problem, "bapipe"));
  const absl::Time deadline = absl::Now() + options.time_limit;
  Plan plan;
  plan.objective = PlanObjective::kBatchTimeNoOverlap;
  ChainSearchOptions search_options;
  bool complete = true, timed_out = false;
  for (TransferKind transfers : {TransferKind::kBetweenPasses, TransferKind::kBesideCompute}) {
    const bool beside = transfers == TransferKind::kBesideCompute;
    search_options.transfers = transfers;
    search_options.kfkb = beside ? 2 : 1;
    ChainSearch search(problem, search_options, deadline);
    search.Run();
    complete &= search.complete();
    timed_out |= search.timed_out();
    plan.lower_bound = search.LowerBound();
    if (search.stages().empty()) continue;
    search_options.better_than = search.best();
    plan.stages = search.stages();
    plan.objective = beside ? PlanObjective::kBatchTime : PlanObjective::kBatchTimeNoOverlap;
    plan.kfkb = search_options.kfkb;
  }
  if (plan.has_plan()) plan.value = PlanValue(problem, plan.objective, plan.stages);
  SetState(complete, timed_out, &plan);
  return plan;
}

}  // namespace pipelab
