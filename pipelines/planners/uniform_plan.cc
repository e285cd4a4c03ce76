// Equal numbers of layers: what one does without costs. The first stages have the ones left over.
#include <algorithm>
#include <vector>

#include "pipelines/planners/plan_costs.h"
#include "pipelines/planners/planners.h"
#include "tools/base/status_macros.h"

namespace pipelab {

absl::StatusOr<Plan> UniformPlan(const PlanProblem& problem, const PlannerOptions& options) {
  PIPELAB_ASSIGN_OR_RETURN(const auto groups, PlanGroups(problem, "uniform"));
  const int size = static_cast<int>(groups.size());
  PIPELAB_ASSIGN_OR_RETURN(const int num_stages, NumStages(problem, options, size));
  std::vector<int> first;
  for (int s = 0, begin = 0; s < num_stages; ++s) {
    first.push_back(begin);
    begin += size / num_stages + (s < size % num_stages ? 1 : 0);
  }
  return PlanOfRanges(problem, problem.objective, groups, first);
}

}  // namespace pipelab
