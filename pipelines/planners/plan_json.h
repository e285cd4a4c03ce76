// Plans as JSON, for other programs and for `check_plan`.
//
//   std::string text = PlanToJson(plan, problem);
//   PIPELAB_ASSIGN_OR_RETURN(Plan again, ParsePlan(text, "--plan=plan.json", problem));
//
// Layers are called by the input's own ids: numbers where the input has numbers. docs/planning.md
// describes the fields. Errors: InvalidArgument, one line with file, field and reason; what a plan
// does wrong with the problem as a whole, CheckPlan says.
#ifndef PIPELAB_PIPELINES_PLANNERS_PLAN_JSON_H_
#define PIPELAB_PIPELINES_PLANNERS_PLAN_JSON_H_

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "pipelines/planners/plan.h"
#include "pipelines/planners/plan_problem.h"

namespace pipelab {

std::string PlanToJson(const Plan& plan, const PlanProblem& problem);

// Only `stages` must be there, each with `layers`. A stage whose layers are run with the first
// variant of the operator may leave out `recompute` and `variants`.
absl::StatusOr<Plan> ParsePlan(absl::string_view text, absl::string_view what,
                               const PlanProblem& problem);

}  // namespace pipelab

#endif  // PIPELAB_PIPELINES_PLANNERS_PLAN_JSON_H_
