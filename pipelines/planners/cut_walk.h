// The edges over the cut of each set of a lattice, set by set. A set differs from its parent in one
// group, so only that group's edges come or go: the work is what the cuts have, not all edges of
// the problem for each set.
//
//   CutWalk walk(problem, groups, sets, deadline);
//   while (walk.Next()) {
//     for (int e : walk.edges()) sums[walk.set()] += problem.edges[e].bytes;
//   }
//   if (walk.stopped()) ...                           // the deadline passed before the last set
#ifndef PIPELAB_PIPELINES_PLANNERS_CUT_WALK_H_
#define PIPELAB_PIPELINES_PLANNERS_CUT_WALK_H_

#include <cstddef>
#include <deque>
#include <vector>

#include "absl/time/time.h"
#include "pipelines/planners/downsets.h"
#include "pipelines/planners/plan_groups.h"
#include "pipelines/planners/plan_problem.h"

namespace pipelab {

class CutWalk {
 public:
  // `sets` of what comes first, or of what comes last.
  CutWalk(const PlanProblem& problem, const OperatorGroups& groups, const Downsets& sets,
          absl::Time deadline);

  // The first call goes to the empty set. False: there are no more sets, or no time.
  bool Next();
  int set() const { return set_; }
  const std::vector<int>& edges() const { return edges_of_.back(); }  // ascending
  bool stopped() const { return stopped_; }

 private:
  const Downsets& sets_;
  const absl::Time deadline_;
  std::vector<std::vector<int>> edges_of_group_;  // to other groups and from them, ascending
  // Parents ascend with their sets, so what is before the last set's parent is not needed again.
  std::deque<std::vector<int>> edges_of_;
  int first_ = 0;  // the set of edges_of_.front()
  int set_ = -1;
  size_t work_ = 0;  // since the clock was read
  bool stopped_ = false;
};

// The operators that the edges come from, ascending.
std::vector<int> SourcesOf(const PlanProblem& problem, const std::vector<int>& edges);

}  // namespace pipelab

#endif  // PIPELAB_PIPELINES_PLANNERS_CUT_WALK_H_
