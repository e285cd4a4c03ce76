// The search for a graph pipeline's plan: keeps the best of what it is offered, and goes on from
// there. It can be stopped at any time.
//
//   GraphSearch search(sets, {.batch = true});
//   search.Offer(piper.stages);                  // plans of any planner
//   search.Improve({.rounds = 200}, /*enough=*/0, &effort);
//   search.stages(), search.value()
//
// A large-neighbourhood search: the best plan's operators are put in a line, its stages and the
// operators in each (or in some neighbouring stages together) in a random order that the graph
// allows. The best plan of that line (order_plans.h) takes its place unless it is worse: every cut,
// number of copies and size of micro-batches is chosen anew at once.
#ifndef PIPELAB_PIPELINES_PLANNERS_GRAPH_SEARCH_H_
#define PIPELAB_PIPELINES_PLANNERS_GRAPH_SEARCH_H_

#include <cstdint>
#include <limits>
#include <unordered_set>
#include <vector>

#include "pipelines/planners/graph_lines.h"
#include "pipelines/planners/operator_sets.h"
#include "pipelines/planners/order_plans.h"
#include "pipelines/planners/plan.h"
#include "pipelines/planners/plan_problem.h"

namespace pipelab {

// In an order in which every edge goes on, branches one after the other, with what is in flight.
// False: the stages feed one another in a cycle.
bool PutStagesInOrder(const PlanProblem& problem, std::vector<PlanStage>* stages);

inline constexpr int kDepthFirstOrders = 6;  // that are tried of a graph

// A search goes on until so many rounds in a row and so many steps found nothing better; where the
// last gain took more rounds than that, until as many again.
struct Patience {
  int rounds = 0;
  int64_t steps = 0;
};

class GraphSearch {
 public:
  // `sets` is kept.
  GraphSearch(const OperatorSets& sets, const GraphGoal& goal);

  // Whether it is the best so far. Stages without a size have micro-batches in proportion to their
  // copies. A plan that breaks a rule of graph pipelines or the goal is left.
  bool Offer(std::vector<PlanStage> stages);
  // A sequence of stages, or none, and the best of its order: copies and sizes of micro-batches
  // chosen anew.
  void OfferSequence(const std::vector<PlanStage>& stages, SearchEffort* effort);
  // The best plan of the order.
  void TryOrder(const std::vector<int>& order, SearchEffort* effort);
  // Listed, by depth and depth-first orders of the graph.
  void TryOrdersOfGraph(int depth_first, SearchEffort* effort);
  // Until it has the value `enough` or its patience ends.
  void Improve(Patience patience, double enough, SearchEffort* effort);

  bool has_plan() const { return !stages_.empty(); }
  const std::vector<PlanStage>& stages() const { return stages_; }
  double value() const { return value_; }

 private:
  void JoinNeighbours(std::vector<int>* part_of);
  // Whether the machine and the batch allow it.
  bool Keeps(const std::vector<PlanStage>& stages) const;

  const OperatorSets& sets_;
  const PlanProblem& p_;
  const GraphGoal goal_;
  std::vector<PlanStage> stages_;
  double value_ = std::numeric_limits<double>::infinity();
  GraphLines lines_;
  std::unordered_set<uint64_t> tried_;  // hashes of orders
};

}  // namespace pipelab

#endif  // PIPELAB_PIPELINES_PLANNERS_GRAPH_SEARCH_H_
