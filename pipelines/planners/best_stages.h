// What planners have in common that search over groups of operators which get finer, each time for
// what is better than the best before: PipeDream's and that of the largest load. Private to them.
//
//   BestStages best;
//   if (best.Take(problem, PlanObjective::kMaxLoad, SearchMaxLoad(...))) ...       // not stopped
//   return std::move(best).ToPlan(problem, PlanObjective::kMaxLoad, proven);
#ifndef PIPELAB_PIPELINES_PLANNERS_BEST_STAGES_H_
#define PIPELAB_PIPELINES_PLANNERS_BEST_STAGES_H_

#include <limits>
#include <vector>

#include "pipelines/planners/plan.h"
#include "pipelines/planners/plan_groups.h"
#include "pipelines/planners/plan_problem.h"

namespace pipelab {

constexpr double kExact = 1e-12;  // relative: what sums of doubles differ by

struct FoundStages {
  std::vector<PlanStage> stages;  // empty: there is no plan below the upper bound
  bool stopped = false;           // by the deadline
};

struct BestStages {
  std::vector<PlanStage> stages;
  double value = std::numeric_limits<double>::infinity();
  bool stopped = false;  // the last search

  // Keeps what is better. False: the search was stopped.
  bool Take(const PlanProblem& problem, PlanObjective objective, FoundStages found);
  // `proven`: nothing better is left, or nothing at all.
  Plan ToPlan(const PlanProblem& problem, PlanObjective objective, bool proven) &&;
};

// The reverse of the groups' followers.
std::vector<std::vector<int>> Needs(const OperatorGroups& groups);

}  // namespace pipelab

#endif  // PIPELAB_PIPELINES_PLANNERS_BEST_STAGES_H_
