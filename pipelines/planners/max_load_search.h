// One search of the planner max_load (max_load_plan.cc), over stages made of whole groups of
// operators.
//
//   const auto found = SearchMaxLoad(problem, groups, sets, /*upper=*/best, deadline);
#ifndef PIPELAB_PIPELINES_PLANNERS_MAX_LOAD_SEARCH_H_
#define PIPELAB_PIPELINES_PLANNERS_MAX_LOAD_SEARCH_H_

#include <vector>

#include "absl/time/time.h"
#include "pipelines/planners/best_stages.h"
#include "pipelines/planners/downsets.h"
#include "pipelines/planners/plan.h"
#include "pipelines/planners/plan_groups.h"
#include "pipelines/planners/plan_problem.h"

namespace pipelab {

// `sets` are those of the groups that can come first.
FoundStages SearchMaxLoad(const PlanProblem& problem, const OperatorGroups& groups,
                          const Downsets& sets, double upper, absl::Time deadline);

}  // namespace pipelab

#endif  // PIPELAB_PIPELINES_PLANNERS_MAX_LOAD_SEARCH_H_
