// GPipe (Huang et al. 2019): the layers in line, cut so that the variance of the stages' compute
// times is the least; communication and memory have no say in it.
#include <vector>

#include "pipelines/cost/chain_partition.h"
#include "pipelines/planners/plan_costs.h"
#include "pipelines/planners/planners.h"
#include "tools/base/status_macros.h"

namespace pipelab {

absl::StatusOr<Plan> GpipePlan(const PlanProblem& problem, const PlannerOptions& options) {
  PIPELAB_ASSIGN_OR_RETURN(const auto groups, PlanGroups(problem, "gpipe"));
  PIPELAB_ASSIGN_OR_RETURN(const int num_stages,
                           NumStages(problem, options, static_cast<int>(groups.size())));
  std::vector<double> times;
  for (const std::vector<int>& group : groups) {
    double time = 0;
    for (int v : group) {
      const PlanOperator& o = problem.operators[v];
      time += o.variants.at(1)[PlainVariantOf(o)].time;
    }
    times.push_back(time);
  }
  PIPELAB_ASSIGN_OR_RETURN(const std::vector<int> first,
                           PartitionChainByVariance(times, num_stages));
  Plan plan = PlanOfRanges(problem, PlanObjective::kVariance, groups, first);
  if (plan.has_plan()) {
    plan.state = PlanState::kOptimal;
    plan.lower_bound = plan.value;
  }
  return plan;
}

}  // namespace pipelab
