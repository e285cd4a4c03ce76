// The checker's own arithmetic for plans of token slices (planning.md, `slice_time`), with no code
// of the planner. Part of CheckPlan (check_plan.h).
#ifndef PIPELAB_PIPELINES_CHECKER_CHECK_SLICES_H_
#define PIPELAB_PIPELINES_CHECKER_CHECK_SLICES_H_

#include "absl/status/statusor.h"
#include "pipelines/planners/plan.h"
#include "pipelines/planners/plan_problem.h"

namespace pipelab {

// What the batch takes. InvalidArgument naming the micro-batch: of a size without times, with
// slices that are not the sample's tokens, or where all are not the batch.
absl::StatusOr<double> CheckSlices(const PlanProblem& problem, const Plan& plan);

}  // namespace pipelab

#endif  // PIPELAB_PIPELINES_CHECKER_CHECK_SLICES_H_
