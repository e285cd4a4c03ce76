// pipelab check_plan: a plan of a file, judged.
#include <string>

#include "absl/flags/declare.h"
#include "absl/flags/flag.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "experiments/commands/command.h"
#include "experiments/commands/output.h"
#include "experiments/commands/plan_problem_flags.h"
#include "experiments/commands/user_file.h"
#include "pipelines/plan/check_plan.h"
#include "pipelines/plan/plan_json.h"
#include "tools/base/status_macros.h"

ABSL_DECLARE_FLAG(std::string, plan);  // plan_input.cc

namespace pipelab {

absl::Status CheckPlanCommand(const Words& words) {
  if (words.size() > 1) {
    return absl::InvalidArgumentError(
        absl::StrCat("'", words[1], "': check_plan takes options alone"));
  }
  const std::string path = absl::GetFlag(FLAGS_plan);
  if (path.empty()) return absl::InvalidArgumentError("--plan: missing; a file or -");
  const std::string what = absl::StrCat("--plan=", path);
  PIPELAB_ASSIGN_OR_RETURN(const PlanProblem problem, PlanProblemFromFlags());
  PIPELAB_ASSIGN_OR_RETURN(const std::string text, ReadUserFile("--plan", path));
  const absl::StatusOr<Plan> parsed = ParsePlan(text, what, problem);
  if (!parsed.ok()) return FaultOfFile(parsed.status());
  const Plan& plan = *parsed;
  if (!plan.has_plan()) {
    return WriteOutput(
        "stdout", "-",
        absl::StrFormat("%s: %s, without a plan\n", path, PlanStateName(plan.state)));
  }
  const absl::StatusOr<PlanReport> report = CheckPlan(problem, plan);
  if (!report.ok()) {
    return absl::FailedPreconditionError(absl::StrCat(what, ": ", report.status().message()));
  }
  return WriteOutput(
      "stdout", "-",
      absl::StrFormat(
          "%s: valid: %d stages on %d devices of %d; %s %.9g %s, nothing is below %.9g "
          "(work over devices %.9g, largest operator %.9g); a batch with fill and drain "
          "%.6g; fullest device %.0f bytes\n",
          path, plan.stages.size(), report->devices, problem.devices,
          PlanObjectiveName(plan.objective), report->value, ObjectiveUnit(problem, plan.objective),
          std::max(plan.lower_bound, report->bound()), report->work_bound, report->operator_bound,
          report->step_time, report->peak_bytes()));
}

}  // namespace pipelab
