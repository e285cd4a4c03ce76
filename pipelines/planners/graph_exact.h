// The best of all plans of a graph pipeline, for small graphs: every way to cut the DAG into convex
// stages whose graph has no cycle.
//
//   GraphExactResult result =
//       BetterGraphPlan(sets, {.batch = true}, {.known_value = 0.004}, &effort);
//
// Stages are added from the sinks on, so that what is planned is an upset: with an operator all
// that take its output. A label is an upset, the devices it takes, its longest stage, and for each
// operator that feeds it the samples in flight and the time of the longest path behind it. Labels
// that are worse than another of the same upset in every figure are dropped, and so are those that
// cannot beat the known value with the devices that are left.
//
// With at most `most_labels` of an upset and a number of devices (Christofides et al., state-space
// relaxation, Networks 1981), one stands for all that are left out, with the least of each of their
// figures: a bound, in bounded time.
#ifndef PIPELAB_PIPELINES_PLANNERS_GRAPH_EXACT_H_
#define PIPELAB_PIPELINES_PLANNERS_GRAPH_EXACT_H_

#include <cstddef>
#include <limits>
#include <vector>

#include "pipelines/planners/operator_sets.h"
#include "pipelines/planners/order_plans.h"
#include "pipelines/planners/plan.h"

namespace pipelab {

constexpr int kMostExactOperators = 64;

struct GraphExactOptions {
  double known_value = std::numeric_limits<double>::infinity();
  size_t most_labels = std::numeric_limits<size_t>::max();
};

struct GraphExactResult {
  bool complete = false;          // there is no better plan than `stages`, or none if empty
  double lower_bound = 0;         // the known value where nothing is below it; 0: it gave up
  std::vector<PlanStage> stages;  // of value below the known one
};

// A graph of more than kMostExactOperators is given up at once, and so is one with many upsets.
GraphExactResult BetterGraphPlan(const OperatorSets& sets, const GraphGoal& goal,
                                 const GraphExactOptions& options, SearchEffort* effort);

}  // namespace pipelab

#endif  // PIPELAB_PIPELINES_PLANNERS_GRAPH_EXACT_H_
