// Whether a plan is one, and how good it is: from the problem alone, with no code of the planners.
//
//   PIPELAB_ASSIGN_OR_RETURN(PlanReport r, CheckPlan(problem, plan));
//   r.value;          // recomputed; the plan's own must equal it
//   r.bound();        // no plan can be below
//
// Checked: every layer is in one stage, in a variant that it has; stages are
// convex and their graph has no cycle; layers of one colour are together; no more devices than
// there are, copies that divide the micro-batches; memory; the plan's value and lower bound.
//
// InvalidArgument, one line naming stage and layer: "stage 2: not convex: layer 4 -> 7 (stage 3) ->
// 9".
#ifndef PIPELAB_PIPELINES_CHECKER_CHECK_PLAN_H_
#define PIPELAB_PIPELINES_CHECKER_CHECK_PLAN_H_

#include <algorithm>
#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "pipelines/planners/plan.h"
#include "pipelines/planners/plan_problem.h"

namespace pipelab {

struct PlanReport {
  double value = 0;                 // of the plan's objective
  double work_bound = 0;            // the work of all operators over all devices
  double operator_bound = 0;        // the largest operator on as many devices as it can have
  std::vector<double> stage_times;  // each stage's part of the value
  std::vector<double> stage_bytes;  // of one of its devices
  int64_t devices = 0;              // used
  // What a batch takes: the longest path through the stages, one micro-batch on each, and the other
  // micro-batches at the pace of the slowest stage.
  double step_time = 0;

  double bound() const { return std::max(work_bound, operator_bound); }
  double peak_bytes() const {
    return stage_bytes.empty() ? 0 : *std::max_element(stage_bytes.begin(), stage_bytes.end());
  }
};

// The plan has stages.
absl::StatusOr<PlanReport> CheckPlan(const PlanProblem& problem, const Plan& plan);

// The same without a look at what the plan says of its value and bound.
absl::StatusOr<PlanReport> EvaluatePlan(const PlanProblem& problem, const Plan& plan);

}  // namespace pipelab

#endif  // PIPELAB_PIPELINES_CHECKER_CHECK_PLAN_H_
