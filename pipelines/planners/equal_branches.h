// Branches of a graph that are alike, so that cuts that differ in which of them they cut are one.
//
//   const EqualBranches equal(problem);
//   auto sets = Downsets::Make(equal.InOrder(groups), limit);   // one of all cuts that are alike
//   ...                                                         // a sequence of stages over `sets`
//   equal.Rearrange(&stages);                                   // the same, with fewest edges cut
//
// Sixteen equal chains of six operators between a source and a join have 7^16 cuts, of which 74,613
// differ in more than the chains' names: how many chains are cut behind their first operator, how
// many behind their second, and so on. Between two such cuts chains that are cut at one place in
// both can be the same, so that no stage sends more than it must.
//
// A branch is an operator or several in a line without other edges among them. It is found between
// operators that come before or after all others.
#ifndef PIPELAB_PIPELINES_PLANNERS_EQUAL_BRANCHES_H_
#define PIPELAB_PIPELINES_PLANNERS_EQUAL_BRANCHES_H_

#include <cstddef>
#include <utility>
#include <vector>

#include "absl/time/time.h"
#include "absl/types/span.h"
#include "pipelines/planners/downsets.h"
#include "pipelines/planners/plan.h"
#include "pipelines/planners/plan_groups.h"
#include "pipelines/planners/plan_problem.h"

namespace pipelab {

class EqualBranches {
 public:
  explicit EqualBranches(const PlanProblem& problem);

  bool any() const { return !classes_.empty(); }
  // The followers of single groups, for sets of what comes last: of equal branches an earlier one
  // has as much in the set as a later one, or more.
  std::vector<std::vector<int>> InOrder(const OperatorGroups& groups) const;
  // [edge] Equal edges of equal branches have one number.
  std::vector<int> EdgeClasses() const;
  // Stages over such sets, the first one first.
  void Rearrange(std::vector<PlanStage>* stages) const;

 private:
  using Branch = std::vector<int>;  // operators
  void RearrangeClass(const std::vector<Branch>& branches, std::vector<PlanStage>* stages) const;

  const PlanProblem& problem_;
  std::vector<std::vector<Branch>> classes_;  // of two branches or more
};

// How many edges of each class a cut has, for cuts below sets of what comes last.
class CutEdges {
 public:
  struct Count {
    int edge_class, edges;
  };
  CutEdges(const PlanProblem& problem, const OperatorGroups& groups, const Downsets& sets,
           const std::vector<int>& edge_class, absl::Time deadline);

  bool stopped() const { return stopped_; }  // the deadline passed: the last sets have no counts
  // By ascending class.
  absl::Span<const Count> of(int set) const {
    return absl::MakeConstSpan(counts_).subspan(begin_[set], begin_[set + 1] - begin_[set]);
  }

 private:
  std::vector<size_t> begin_;
  std::vector<Count> counts_;
  bool stopped_ = false;
};

}  // namespace pipelab

#endif  // PIPELAB_PIPELINES_PLANNERS_EQUAL_BRANCHES_H_
