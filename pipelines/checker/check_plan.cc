#include "pipelines/checker/check_plan.h"

#include <cmath>
#include <utility>

#include "absl/status/status.h"
#include "pipelines/checker/check_batch_time.h"
#include "pipelines/checker/check_figures.h"
#include "pipelines/checker/check_rules.h"
#include "pipelines/checker/check_slices.h"
#include "pipelines/checker/check_view.h"
#include "tools/base/status_macros.h"

namespace pipelab {
namespace {

// What the plan says of itself.
absl::Status CheckClaims(const Plan& plan, const PlanReport& report) {
  const double scale = std::max(report.value, 1e-300);
  if (!std::isnan(plan.value) && !(std::abs(plan.value - report.value) <= kSumTolerance * scale)) {
    return PlanError("the plan says ", plan.value, " for its ", PlanObjectiveName(plan.objective),
                     ", which is ", report.value);
  }
  if (plan.lower_bound > report.value * (1 + kSumTolerance)) {
    return PlanError("the plan says that its lower bound is ", plan.lower_bound, ", but it is ",
                     report.value);
  }
  if (report.bound() > report.value * (1 + kSumTolerance)) {
    return PlanError("the value ", report.value, " is below the bound ", report.bound());
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<PlanReport> EvaluatePlan(const PlanProblem& problem, const Plan& plan) {
  if (!plan.has_plan()) return PlanError("the plan has no stages");
  PIPELAB_ASSIGN_OR_RETURN(const PlanView view, PlanView::Make(problem, plan));
  PIPELAB_ASSIGN_OR_RETURN(PlanNeeds needs, CheckRules(view));
  PlanReport report;
  report.devices = needs.devices;
  report.stage_bytes = std::move(needs.stage_bytes);
  if (IsBatchTime(plan.objective)) {
    PIPELAB_ASSIGN_OR_RETURN(BatchTimeFigures figures, CheckBatchTime(problem, plan));
    report.value = report.step_time = figures.value;
    report.work_bound = figures.work_bound;
    report.stage_times = std::move(figures.stage_times);
  } else if (plan.objective == PlanObjective::kSliceTime) {
    PIPELAB_ASSIGN_OR_RETURN(report.value, CheckSlices(problem, plan));
    report.step_time = report.value;
    for (int s = 0; s < view.num_stages(); ++s) report.stage_times.push_back(view.Compute(s));
  } else {
    AddFigures(view, &report);
  }
  return report;
}

absl::StatusOr<PlanReport> CheckPlan(const PlanProblem& problem, const Plan& plan) {
  PIPELAB_ASSIGN_OR_RETURN(PlanReport report, EvaluatePlan(problem, plan));
  PIPELAB_RETURN_IF_ERROR(CheckClaims(plan, report));
  return report;
}

}  // namespace pipelab
