// The two exact searches behind the planner "pipedream" (pipedream_plan.cc).
//
// PipeDreamByLevels is PipeDream's own dynamic program, level by level, for plans that use all
// machines of every level. PipeDreamByCopies is for one level and graphs with tens of thousands of
// cuts: plans on at most so many machines, in one pass over pairs of cuts.
#ifndef PIPELAB_PIPELINES_PLANNERS_PIPEDREAM_SEARCH_H_
#define PIPELAB_PIPELINES_PLANNERS_PIPEDREAM_SEARCH_H_

#include <cstdint>
#include <limits>
#include <vector>

#include "absl/time/time.h"
#include "pipelines/planners/best_stages.h"
#include "pipelines/planners/downsets.h"
#include "pipelines/planners/plan.h"
#include "pipelines/planners/plan_groups.h"
#include "pipelines/planners/plan_problem.h"

namespace pipelab {

// Plain variants; `sets` of what comes first. It is known that no plan is below `lower`.
FoundStages PipeDreamByLevels(const PlanProblem& problem, const OperatorGroups& groups,
                              const Downsets& sets, double upper, double lower,
                              absl::Time deadline);
// `sets` of what comes last.
FoundStages PipeDreamByCopies(const PlanProblem& problem, const OperatorGroups& groups,
                              const Downsets& sets, double upper, absl::Time deadline);

// A stage of these groups.
PlanStage MakePipeDreamStage(const PlanProblem& problem, const OperatorGroups& groups,
                             const std::vector<int>& members, std::vector<int64_t> machines);

}  // namespace pipelab

#endif  // PIPELAB_PIPELINES_PLANNERS_PIPEDREAM_SEARCH_H_
