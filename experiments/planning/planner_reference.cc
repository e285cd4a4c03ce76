// tools/bazel run //experiments:planner_reference
//
// Our planners on the inputs of others, beside what those found and how long they took.
#include <algorithm>
#include <cmath>
#include <iostream>
#include <string>
#include <utility>
#include <vector>

#include "absl/flags/flag.h"
#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "experiments/flags/flags.h"
#include "experiments/planning/reference_rows.h"
#include "experiments/report/report.h"
#include "experiments/study/study_flags.h"
#include "experiments/study/study_list.h"
#include "experiments/study/study_main.h"
#include "pipelines/planners/planners.h"
#include "tools/base/file.h"
#include "tools/base/shared_data.h"
#include "tools/base/status_macros.h"

namespace pipelab {
namespace {

STUDY_FLAG(
    std::string, inputs, "",
    "folder with reference_results.csv and the files that it names; empty: planner-inputs in "
    "the folder of PIPELAB_SHARED, or in ../shared beside the checkout");
STUDY_FLAG(std::string, only, "", "rows whose name has this word");
STUDY_FLAG(int, repeats, 3, "runs of each planner; the fastest is shown");
STUDY_FLAG(double, time_limit_s, 60, "seconds for each plan");

constexpr char kInputs[] = "planner-inputs";
constexpr char kTag[] = "reference run";  // of the peer's own program, on another machine
constexpr double kSameObjective = 1e-6;   // the references' digits

struct PlannedRow {
  const ReferenceRow* row = nullptr;
  Plan plan;

  double seconds() const { return absl::ToDoubleSeconds(plan.search_time); }
  bool compared() const { return plan.has_plan() && row->objective.has_value(); }
  double difference() const { return plan.value / *row->objective - 1; }
};

absl::StatusOr<PlannedRow> PlanRow(const ReferenceRow& row, const std::string& folder) {
  PIPELAB_ASSIGN_OR_RETURN(const PlanProblem problem, ProblemOf(row, folder));
  PlannerOptions options;
  options.time_limit = absl::Seconds(absl::GetFlag(FLAGS_time_limit_s));
  PlannedRow best;
  best.row = &row;
  for (int i = 0; i < std::max(1, absl::GetFlag(FLAGS_repeats)); ++i) {
    PIPELAB_ASSIGN_OR_RETURN(Plan plan, MakePlan(row.planner, problem, options));
    if (i == 0 || plan.search_time < best.plan.search_time) best.plan = std::move(plan);
  }
  return best;
}

Cell OrMissing(const absl::optional<double>& value, Cell (*cell)(double), const char* why) {
  return value.has_value() ? cell(*value) : Missing(why);
}
Cell Reference(double value) { return Published(value, kTag); }

Table ReferenceTable(const std::vector<PlannedRow>& rows) {
  Table t("planners", "Our planners on others' inputs");
  t.AddKey("input");
  t.AddKey("planner");
  const Origin computed = Origin::kComputed;
  // A search that its time limit ends has what it has found by then.
  const bool varies = std::any_of(rows.begin(), rows.end(), [](const PlannedRow& p) {
    return p.seconds() >= absl::GetFlag(FLAGS_time_limit_s);
  });
  t.AddColumn({"state", "state", "", "", computed, 0, varies});
  t.AddColumn({"objective", "objective", "", "", computed, 6, varies});
  t.AddColumn({"reference", "reference", "", "", Origin::kPublished, 6});
  t.AddColumn({"difference", "difference", "", "%", computed, 4, varies});
  t.AddColumn({"bound", "lower bound", "bound", "", computed, 6, varies});
  t.AddColumn({"search", "search", "", "s", Origin::kMeasured, 5});
  t.AddColumn({"search_reference", "reference's search", "reference", "s", Origin::kPublished, 3});
  t.AddColumn({"ratio", "times as fast", "faster", "x", computed, 0, /*varies=*/true});
  for (const PlannedRow& p : rows) {
    absl::optional<double> value, ratio, difference;
    if (p.plan.has_plan()) value = p.plan.value;
    if (p.compared()) difference = ToPercent(p.difference());
    if (p.row->seconds.has_value()) ratio = *p.row->seconds / p.seconds();
    t.AddRow({Label(p.row->Name()), Label(p.row->planner), Computed(PlanStateName(p.plan.state)),
              OrMissing(value, Computed, "there is no plan"),
              OrMissing(p.row->objective, Reference,
                        p.row->infeasible ? "proved that there is none" : "found none"),
              OrMissing(difference, Computed, "one of the two has none"),
              Computed(p.plan.lower_bound), Measured(p.seconds()),
              OrMissing(p.row->seconds, Reference, "took no measurable time, or was stopped"),
              OrMissing(ratio, Computed, "the reference has no time")});
  }
  return t;
}

Claim ObjectiveClaim(const std::vector<PlannedRow>& rows) {
  Claim c = OwnClaim("planners.objectives",
                     "no plan is worse than what the others' own programs found for their inputs");
  int compared = 0, worse = 0;
  double largest = 0;
  std::string names;
  for (const PlannedRow& p : rows) {
    const bool infeasible_here = p.plan.state == PlanState::kInfeasible;
    if (!p.compared() && !p.row->infeasible) continue;
    ++compared;
    const bool right = p.row->infeasible ? infeasible_here : p.difference() <= kSameObjective;
    if (p.compared()) largest = std::max(largest, ToPercent(p.difference()));
    if (right) continue;
    ++worse;
    absl::StrAppend(&names, names.empty() ? "" : "; ", p.row->Name());
  }
  c.unit = "%";
  c.origin = Origin::kComputed;
  Found(&c, Origin::kComputed, largest,
        absl::StrFormat("%d of %d rows as good or better", compared - worse, compared));
  MetIf(&c, worse == 0 && compared > 0, "all rows",
        compared == 0 ? "no row has a reference" : names);
  return c;
}

Claim SpeedClaim(const std::vector<PlannedRow>& rows) {
  Claim c = OwnClaim("planners.speed", "searches are faster than the others' own programs");
  std::vector<double> ratios;
  for (const PlannedRow& p : rows) {
    if (!p.row->seconds.has_value()) continue;
    if (p.row->objective.has_value() || p.row->infeasible) {
      ratios.push_back(*p.row->seconds / p.seconds());
    }
  }
  if (ratios.empty()) {
    NotMade(&c, "no row has a time");
    return c;
  }
  std::sort(ratios.begin(), ratios.end());
  c.unit = "x";
  Found(&c, Origin::kMeasured, ratios.front(),
        absl::StrFormat("%.0fx in the median, %.1fx at least, over %d rows",
                        ratios[ratios.size() / 2], ratios.front(), ratios.size()));
  MetIf(&c, ratios.front() > 1, "each more than 1x", "another machine, and searches of its own");
  return c;
}

absl::Status Run(StudyRun* study) {
  const std::string named = absl::GetFlag(FLAGS_inputs);
  const std::string folder =
      named.empty() ? SharedDataFolder(kInputs) : ResolveOutputPath(named, "");
  PIPELAB_RETURN_IF_ERROR(study->Begin());
  Report& report = study->report();
  if (folder.empty()) {
    for (const char* id : {"planners.objectives", "planners.speed"}) {
      Claim c = OwnClaim(id, "our planners beside others' own programs, on their inputs");
      NotMade(&c, absl::StrCat("the inputs are not part of the project: ", NoSharedData(kInputs)));
      report.AddClaim(std::move(c));
    }
    return absl::OkStatus();
  }
  PIPELAB_ASSIGN_OR_RETURN(const std::vector<ReferenceRow> rows, ReadReferenceRows(folder));
  std::vector<PlannedRow> planned;
  for (const ReferenceRow& row : rows) {
    if (!absl::StrContains(row.Name(), absl::GetFlag(FLAGS_only))) continue;
    std::cerr << row.Name() << std::endl;
    PIPELAB_ASSIGN_OR_RETURN(PlannedRow p, PlanRow(row, folder));
    planned.push_back(std::move(p));
  }
  report.AddTable(ReferenceTable(planned));
  report.AddClaim(ObjectiveClaim(planned));
  report.AddClaim(SpeedClaim(planned));
  return absl::OkStatus();
}

}  // namespace

int RunPlannerReferenceStudy(int argc, char** argv) {
  RegisterStudyFlags(__FILE__);
  StudyInfo info;
  info.name = "planner_reference";
  info.title = "Our planners beside others, on their own inputs";
  info.summary = "Our planners beside others on their own inputs.";
  info.description =
      "Inputs and results of PipeDream's, Piper's and others' own programs, which are not part of "
      "the project (docs/development.md), and what our planners find for them.";
  info.quick = {{"repeats", "1"}};
  info.quick_leaves_out = "2 of 3 repeats";
  info.unrecorded = {"inputs"};
  return RunStudyMain(argc, argv, info, Run);
}

}  // namespace pipelab
