// What a plan is worth under objectives that are of stages, in the checker's own arithmetic. Part
// of CheckPlan (check_plan.h).
#ifndef PIPELAB_PIPELINES_CHECKER_CHECK_FIGURES_H_
#define PIPELAB_PIPELINES_CHECKER_CHECK_FIGURES_H_

#include "pipelines/checker/check_plan.h"
#include "pipelines/checker/check_view.h"

namespace pipelab {

// Fills in the report's value, bounds, stage times and step time. CheckRules found nothing.
void AddFigures(const PlanView& view, PlanReport* report);

}  // namespace pipelab

#endif  // PIPELAB_PIPELINES_CHECKER_CHECK_FIGURES_H_
