// pipelab check_plan: a plan of a file, judged.
#include <algorithm>
#include <string>

#include "absl/flags/declare.h"
#include "absl/flags/flag.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "experiments/commands/command.h"
#include "experiments/commands/plan_problem_flags.h"
#include "experiments/flags/output.h"
#include "experiments/plan_commands/plan_commands.h"
#include "experiments/simulate/user_file.h"
#include "pipelines/checker/check_plan.h"
#include "pipelines/planners/plan_json.h"
#include "tools/base/file_fault.h"
#include "tools/base/json.h"
#include "tools/base/status_macros.h"

ABSL_DECLARE_FLAG(std::string, plan);      // plan_input.cc
ABSL_DECLARE_FLAG(std::string, json_out);  // simulate_command.cc

namespace pipelab {
namespace {

nlohmann::json Invalid(absl::string_view reason) {
  return {{"schema", kOutputSchema}, {"valid", false}, {"reason", reason}};
}

nlohmann::json CheckedPlanJson(const PlanProblem& problem, const Plan& plan,
                               const absl::StatusOr<PlanReport>& report) {
  if (!report.ok()) return Invalid(report.status().message());
  return {{"schema", kOutputSchema},
          {"valid", true},
          {"stages", plan.stages.size()},
          {"devices", report->devices},
          {"objective", PlanObjectiveName(plan.objective)},
          {"value", report->value},
          {"unit", ObjectiveUnit(problem, plan.objective)},
          {"lower_bound", std::max(plan.lower_bound, report->bound())},
          {"step_time", report->step_time},
          {"peak_bytes", report->peak_bytes()}};
}

}  // namespace

absl::Status CheckPlanCommand(const Words& words) {
  PIPELAB_RETURN_IF_ERROR(CheckOptionsAlone(words, "check_plan"));
  const std::string path = absl::GetFlag(FLAGS_plan);
  if (path.empty()) return absl::InvalidArgumentError("--plan: missing; a file or -");
  const std::string what = absl::StrCat("--plan=", path);
  PIPELAB_ASSIGN_OR_RETURN(const PlanProblem problem, PlanProblemFromFlags());
  PIPELAB_ASSIGN_OR_RETURN(const std::string text, ReadUserFile("--plan", path));
  PIPELAB_ASSIGN_OR_RETURN(const Plan plan, FaultOfFile(ParsePlan(text, what, problem)));
  const std::string json_out = absl::GetFlag(FLAGS_json_out);
  if (!plan.has_plan()) {
    const std::string state = absl::StrCat(PlanStateName(plan.state), ", without a plan");
    if (!json_out.empty()) {
      return WriteOutput("--json_out", json_out, DumpJson(Invalid(state)));
    }
    return WriteOutput("stdout", "-", absl::StrCat(path, ": ", state, "\n"));
  }
  const absl::StatusOr<PlanReport> report = CheckPlan(problem, plan);
  if (!json_out.empty()) {
    PIPELAB_RETURN_IF_ERROR(
        WriteOutput("--json_out", json_out, DumpJson(CheckedPlanJson(problem, plan, report))));
    // With the verdict on stdout an error without a message prints nothing more.
    if (json_out == "-") return report.ok() ? absl::OkStatus() : absl::FailedPreconditionError("");
  }
  if (!report.ok()) {
    return absl::FailedPreconditionError(absl::StrCat(what, ": ", report.status().message()));
  }
  return WriteOutput(
      "stdout", "-",
      absl::StrFormat(
          "%s: valid: %d stages on %d devices of %d; %s %.9g %s, lower bound %.9g "
          "(work over devices %.9g, largest operator %.9g); a batch with fill and drain "
          "%.6g; fullest device %.0f bytes\n",
          path, plan.stages.size(), report->devices, problem.devices,
          PlanObjectiveName(plan.objective), report->value, ObjectiveUnit(problem, plan.objective),
          std::max(plan.lower_bound, report->bound()), report->work_bound, report->operator_bound,
          report->step_time, report->peak_bytes()));
}

}  // namespace pipelab
