// The search of GraphPipe's planner, for those who want more than its answer.
//
//   PIPELAB_ASSIGN_OR_RETURN(std::vector<Plan> plans, GraphPipeFront(problem, options));
//   for (const Plan& plan : plans) ...            // simulate each, say
//
// Each is the best found by a batch's time under a bound on its longest stage. The first bound is
// the least longest stage; each further one is 3 % longer, and its plan may take less to fill and
// drain, since fewer samples are in flight: stages are fewer, or have smaller micro-batches, or
// stand side by side. Beyond the last no plan could make a batch's time shorter. Plans far from the
// best are left out.
#ifndef PIPELAB_PIPELINES_PLANNERS_GRAPHPIPE_FRONT_H_
#define PIPELAB_PIPELINES_PLANNERS_GRAPHPIPE_FRONT_H_

#include <vector>

#include "absl/status/statusor.h"
#include "pipelines/planners/plan.h"
#include "pipelines/planners/plan_problem.h"
#include "pipelines/planners/planners.h"

namespace pipelab {

// With what a batch takes as their values (kGraphBatchTime); options.time_limit is for all
// together, and where it ended the search each says so (PlanState::kTimeLimit). Never empty: where
// there is no plan, one without stages whose state says why. Errors are the planner's.
absl::StatusOr<std::vector<Plan>> GraphPipeFront(const PlanProblem& problem,
                                                 const PlannerOptions& options);

}  // namespace pipelab

#endif  // PIPELAB_PIPELINES_PLANNERS_GRAPHPIPE_FRONT_H_
