#include "pipelines/planners/best_stages.h"

#include <utility>

#include "pipelines/planners/plan_costs.h"

namespace pipelab {

bool BestStages::Take(const PlanProblem& problem, PlanObjective objective, FoundStages found) {
  stopped = found.stopped;
  if (found.stages.empty()) return !stopped;
  const double found_value = PlanValue(problem, objective, found.stages);
  if (found_value < value) {
    value = found_value;
    stages = std::move(found.stages);
  }
  return !stopped;
}

Plan BestStages::ToPlan(const PlanProblem& problem, PlanObjective objective, bool proven) && {
  Plan plan;
  plan.objective = objective;
  plan.stages = std::move(stages);
  plan.value = plan.has_plan() ? value : 0;
  plan.lower_bound = SimpleLowerBound(problem, objective);
  // Without a plan and without a proof a search gave up, whatever stopped it.
  SetState(proven, stopped || !plan.has_plan(), &plan);
  return plan;
}

std::vector<std::vector<int>> Needs(const OperatorGroups& groups) {
  std::vector<std::vector<int>> needs(groups.members.size());
  for (size_t g = 0; g < needs.size(); ++g) {
    for (int h : groups.followers[g]) needs[h].push_back(static_cast<int>(g));
  }
  return needs;
}

}  // namespace pipelab
