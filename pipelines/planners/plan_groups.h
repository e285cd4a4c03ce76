// Operators in groups that stages do not part: to plan a graph with fewer cuts than it has, and to
// keep together what must share a device.
//
//   PlanGroups groups = SingleGroups(problem);             // every operator its own
//   auto fewer = CoarserGroups(problem, groups, /*limit=*/600);     // at most so many downsets
//   auto sets = Downsets::Make(groups.followers, 40000);   // of what comes last
#ifndef PIPELAB_PIPELINES_PLANNERS_PLAN_GROUPS_H_
#define PIPELAB_PIPELINES_PLANNERS_PLAN_GROUPS_H_

#include <vector>

#include "pipelines/planners/plan_problem.h"

namespace pipelab {

struct OperatorGroups {
  std::vector<std::vector<int>> members;    // in topological order of the groups
  std::vector<std::vector<int>> followers;  // [group] -> groups that take its outputs, each once
  std::vector<int> group_of;                // [operator]
};

// From members in any order that have no cycle among them; `edges` are pairs of operators, of which
// the first comes first.
OperatorGroups MakeGroups(std::vector<std::vector<int>> members, int num_operators,
                          const std::vector<std::pair<int, int>>& edges);

OperatorGroups SingleGroups(const PlanProblem& problem);

// Joins neighbours on paths without branches, no more than needed for `limit` downsets; where whole
// paths are too many, everything is put in one line.
OperatorGroups CoarserGroups(const OperatorGroups& groups, int limit);

// A limit for groups that every search gets through.
inline constexpr int kFewSets = 16;

}  // namespace pipelab

#endif  // PIPELAB_PIPELINES_PLANNERS_PLAN_GROUPS_H_
