// tools/bazel run //experiments/planning:planner_reference -- --inputs=FOLDER
//
// Our planners on the inputs of others, beside what those found and how long they took.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <iostream>
#include <string>
#include <vector>

#include "absl/flags/flag.h"
#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "experiments/flags.h"
#include "experiments/planning/reference_rows.h"
#include "pipelines/plan/planners.h"
#include "tools/base/file.h"
#include "tools/base/status_macros.h"
#include "tools/base/text_columns.h"

ABSL_FLAG(std::string, inputs, "../shared/planner-inputs",
          "folder with reference_results.csv and the files that it names");
ABSL_FLAG(std::string, only, "", "rows whose name has this word");
ABSL_FLAG(int, repeats, 3, "runs of each planner, of which the fastest is shown");
ABSL_FLAG(double, time_limit_s, 60, "seconds for each plan");

namespace pipelab {
namespace {

std::string Number(const absl::optional<double>& number, const char* format) {
  if (!number.has_value()) return "-";
  char text[64];
  std::snprintf(text, sizeof text, format, *number);
  return text;
}

absl::Status Run(const std::vector<std::string>&) {
  const std::string folder = ResolveOutputPath(absl::GetFlag(FLAGS_inputs), "");
  PIPELAB_ASSIGN_OR_RETURN(const std::vector<ReferenceRow> rows, ReadReferenceRows(folder));
  std::vector<std::vector<std::string>> lines = {
      {"input", "planner", "state", "objective", "reference", "difference", "bound", "search",
       "reference", "ratio"},
      {"", "", "", "", "", "relative", "", "s", "s", ""}};
  std::vector<double> ratios;
  for (const ReferenceRow& row : rows) {
    if (!absl::StrContains(row.Name(), absl::GetFlag(FLAGS_only))) continue;
    std::cerr << row.Name() << std::endl;
    PIPELAB_ASSIGN_OR_RETURN(const PlanProblem problem, ProblemOf(row, folder));
    PlannerOptions options;
    options.time_limit = absl::Seconds(absl::GetFlag(FLAGS_time_limit_s));
    absl::optional<Plan> best;
    for (int i = 0; i < std::max(1, absl::GetFlag(FLAGS_repeats)); ++i) {
      PIPELAB_ASSIGN_OR_RETURN(Plan plan, MakePlan(row.planner, problem, options));
      if (!best.has_value() || plan.search_time < best->search_time) best = std::move(plan);
    }
    const double seconds = absl::ToDoubleSeconds(best->search_time);
    absl::optional<double> value, ratio, difference;
    if (best->has_plan()) value = best->value;
    if (row.seconds.has_value()) {
      ratio = *row.seconds / seconds;
      if (row.objective.has_value() || row.infeasible) ratios.push_back(*ratio);
    }
    if (value.has_value() && row.objective.has_value()) {
      difference = *value / *row.objective - 1;
    }
    lines.push_back({row.Name(), row.planner, PlanStateName(best->state), Number(value, "%.9g"),
                     row.infeasible ? "infeasible" : Number(row.objective, "%.9g"),
                     Number(difference, "%+.1e"), Number(best->lower_bound, "%.9g"),
                     Number(seconds, "%.5f"), Number(row.seconds, "%.3f"), Number(ratio, "%.0f")});
  }
  std::cout << AlignColumns(lines, 2,
                            {false, false, false, true, true, true, true, true, true, true});
  if (ratios.empty()) return absl::OkStatus();
  std::sort(ratios.begin(), ratios.end());
  std::cout << absl::StrFormat(
      "\n%d rows with times: %.0f times as fast in the median, %.1f at least\n", ratios.size(),
      ratios[ratios.size() / 2], ratios.front());
  return absl::OkStatus();
}

}  // namespace
}  // namespace pipelab

int main(int argc, char** argv) {
  return pipelab::RunMain(argc, argv, "//experiments/planning:planner_reference",
                          "Our planners beside others on their own inputs.", pipelab::Run);
}
