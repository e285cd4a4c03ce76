// A lower bound on every plan of a graph pipeline, and the sequence of stages that has it.
//
//   GraphBound bound = BoundOfGraphPlans(problem, /*batch=*/true, known_value, deadline);
//   bound.value        // no plan below known_value is below this
//
// Stages in an order in which every edge goes on are a sequence of convex stages, so the best such
// sequence of a problem in which no stage takes longer, or more memory, than in any graph plan is a
// bound. Messages and sums of gradients are as fast as anywhere, micro-batches are of the best
// size, and a stage has in flight what every plan below the known value must have there: a path of
// operators behind it that takes w on one device has stages of w / T copies at least if none takes
// longer than T, and each has its own micro-batch in flight. A batch takes, besides its
// micro-batches at a stage's pace, what the longest path of operators into the stage and out of it
// takes.
#ifndef PIPELAB_PIPELINES_PLANNERS_GRAPH_BOUND_H_
#define PIPELAB_PIPELINES_PLANNERS_GRAPH_BOUND_H_

#include <string>
#include <vector>

#include "absl/time/time.h"
#include "pipelines/planners/plan.h"
#include "pipelines/planners/plan_problem.h"

namespace pipelab {

struct GraphBound {
  double value = 0;
  std::string reason;
  std::vector<PlanStage> stages;  // a sequence of that value, which may not fit in memory; or none
  bool infeasible = false;        // no plan fits in memory
  bool too_many_cuts = false;     // for the search
};

// A bound of kGraphBatchTime (`batch`), or of kGraphStageTime. `known` is infinite where no plan is
// known. Without the search, which needs a graph of few cuts, the bound is that of the work of all
// operators.
GraphBound BoundOfGraphPlans(const PlanProblem& problem, bool batch, double known,
                             absl::Time deadline);

}  // namespace pipelab

#endif  // PIPELAB_PIPELINES_PLANNERS_GRAPH_BOUND_H_
