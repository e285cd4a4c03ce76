// The best cut of groups of operators in line into stages of one device each: for each suffix and
// number of stages, over all first stages.
//
//   const ChainRanges best = BestRanges(problem, groups, /*stages=*/0, /*most=*/8, deadline);
//   PlanOfRanges(problem, problem.objective, groups, best.first);
#ifndef PIPELAB_PIPELINES_PLANNERS_CHAIN_RANGES_H_
#define PIPELAB_PIPELINES_PLANNERS_CHAIN_RANGES_H_

#include <limits>
#include <vector>

#include "absl/time/time.h"
#include "pipelines/planners/plan_problem.h"

namespace pipelab {

struct ChainRanges {
  std::vector<int> first;  // [stage] its first group; empty: nothing fits in memory, or stopped
  double value = std::numeric_limits<double>::infinity();  // the largest stage's
  bool stopped = false;                                    // by the deadline
};

// In at most `most` stages, or in exactly `stages` where that is above 0. Plain variants.
ChainRanges BestRanges(const PlanProblem& problem, const std::vector<std::vector<int>>& groups,
                       int stages, int most, absl::Time deadline);

}  // namespace pipelab

#endif  // PIPELAB_PIPELINES_PLANNERS_CHAIN_RANGES_H_
