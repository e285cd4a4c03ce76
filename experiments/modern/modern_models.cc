// bazel run //experiments:modern_models -- [--measured=FOLDER]
//
// Published training runs of today's models beside predictions (docs/modern_models.md).
#include <algorithm>
#include <iterator>
#include <string>
#include <utility>
#include <vector>

#include "absl/flags/flag.h"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "experiments/modern/golden_rows.h"
#include "experiments/modern/layout_groups.h"
#include "experiments/modern/libai_rows.h"
#include "experiments/modern/measured_layouts.h"
#include "experiments/modern/mlperf_rows.h"
#include "experiments/modern/modern_claims.h"
#include "experiments/modern/modern_machines.h"
#include "experiments/modern/modern_results.h"
#include "experiments/modern/modern_tables.h"
#include "experiments/modern/primus_schedules.h"
#include "experiments/modern/primus_timeline.h"
#include "experiments/modern/recipe_search.h"
#include "experiments/modern/row_steps.h"
#include "experiments/modern/simumax_rows.h"
#include "experiments/report/claim.h"
#include "experiments/report/report.h"
#include "experiments/report/table.h"
#include "experiments/study/study_flags.h"
#include "experiments/study/study_list.h"
#include "experiments/study/study_main.h"
#include "pipelines/cluster/cluster_json.h"
#include "tools/base/file.h"
#include "tools/base/file_fault.h"
#include "tools/base/shared_data.h"
#include "tools/base/status_macros.h"

namespace pipelab {
namespace {

STUDY_FLAG(std::string, measured, "",
           "folder with modern_training_rows.csv and modern_models.csv; empty: the shared inputs");
STUDY_FLAG(bool, recipes, true,
           "search for better layouts than the published ones, in five minutes");

constexpr char kInputs[] = "measured";
constexpr char kMlperfRows[] = "mlperf_405b_rows.csv";
constexpr char kSimumaxRows[] = "simumax_b200_rows.csv";
constexpr char kLibaiRows[] = "libai_v100_rows.csv";
constexpr char kPrimusRun[] = "primus_pp8";
constexpr char kSimumaxMachine[] = "simumax_b200_system.json";

// A folder without these rows has no claim about them.
absl::Status AddMlperf(const std::string& folder, const std::vector<ModernModel>& models,
                       const ModernMachines& machines, Report* report) {
  const absl::StatusOr<std::string> text = ReadFile(JoinPath(folder, kMlperfRows));
  std::vector<MlperfStep> steps;
  if (text.ok()) {
    PIPELAB_ASSIGN_OR_RETURN(const std::vector<ModernRow> rows,
                             FaultOfFile(ParseMlperfRows(*text, kMlperfRows)));
    PIPELAB_ASSIGN_OR_RETURN(steps, PredictMlperf(rows, models, machines));
    report->AddTable(MlperfTable(steps));
    report->AddTable(MlperfLineTable(steps));
  }
  for (Claim& claim : MlperfClaims(steps)) report->AddClaim(std::move(claim));
  return absl::OkStatus();
}

// Likewise.
absl::Status AddSimumax(const std::string& folder, const std::vector<ModernModel>& models,
                        const ModernMachines& machines, Report* report) {
  const absl::StatusOr<std::string> text = ReadFile(JoinPath(folder, kSimumaxRows));
  const absl::StatusOr<std::string> machine = ReadFile(JoinPath(folder, kSimumaxMachine));
  std::vector<RowStep> steps, own;
  if (text.ok()) {
    PIPELAB_ASSIGN_OR_RETURN(const SimumaxRows rows,
                             FaultOfFile(ParseSimumaxRows(*text, kSimumaxRows, models)));
    PIPELAB_ASSIGN_OR_RETURN(steps, PredictSimumax(rows, machines));
    report->AddTable(SimumaxTable(steps));
    if (machine.ok()) {
      ModernMachines with_own = machines;
      PIPELAB_ASSIGN_OR_RETURN(with_own.by_gpu["B200"],
                               FaultOfFile(ParseCluster(*machine, kSimumaxMachine)));
      PIPELAB_ASSIGN_OR_RETURN(own, PredictSimumax(rows, with_own));
      report->AddTable(SimumaxOwnTable(own));
    }
  }
  for (Claim& claim : SimumaxClaims(steps)) report->AddClaim(std::move(claim));
  report->AddClaim(SimumaxOwnTableClaim(own));
  return absl::OkStatus();
}

// Likewise.
absl::Status AddLibai(const std::string& folder, Report* report) {
  const absl::StatusOr<std::string> text = ReadFile(JoinPath(folder, kLibaiRows));
  LibaiSteps all;
  if (text.ok()) {
    PIPELAB_ASSIGN_OR_RETURN(const std::vector<MeasuredRow> rows,
                             FaultOfFile(ParseLibaiRows(*text, kLibaiRows)));
    PIPELAB_ASSIGN_OR_RETURN(all, FaultOfFile(PredictLibai(rows)));
    report->AddTable(LibaiTable(all.steps));
  }
  report->AddClaim(LibaiClaim(all.steps));
  return absl::OkStatus();
}

// A folder without this run has no claim about it, either.
absl::Status AddPrimus(const std::string& folder, Report* report) {
  const std::string path = JoinPath(folder, kPrimusRun);
  PrimusTimeline timeline;
  if (PathExists(path)) {
    PIPELAB_ASSIGN_OR_RETURN(const PrimusRun run, ReadPrimusRun(path));
    PIPELAB_ASSIGN_OR_RETURN(timeline, ReplayPrimus(run));
    report->AddTable(PrimusTimelineTable(timeline));
  }
  report->AddClaim(PrimusTimelineClaim(timeline));
  return absl::OkStatus();
}

// These rows are the project's own, and need no shared data.
absl::Status AddOwnRows(Report* report) {
  PIPELAB_ASSIGN_OR_RETURN(const std::vector<GoldenRow> rows, ReadGoldenRows());
  PIPELAB_ASSIGN_OR_RETURN(const std::vector<RowStep> golden, PredictGolden(rows));
  report->AddTable(GoldenTable(golden));
  report->AddClaim(GoldenClaim(golden));
  PIPELAB_ASSIGN_OR_RETURN(const std::vector<PrimusSchedule> primus, PredictPrimusSchedules());
  report->AddTable(PrimusSchedulesTable(primus));
  report->AddClaim(PrimusSchedulesClaim(primus));
  return absl::OkStatus();
}

absl::Status Run(StudyRun* study) {
  const std::string named = absl::GetFlag(FLAGS_measured);
  const std::string folder =
      named.empty() ? SharedDataFolder(kInputs) : ResolveOutputPath(named, "");
  PIPELAB_RETURN_IF_ERROR(study->Begin());
  Report& report = study->report();
  PIPELAB_RETURN_IF_ERROR(AddOwnRows(&report));
  if (folder.empty()) {
    for (Claim& c : ModernClaims({})) {
      NotMade(&c, absl::StrCat("the rows are not part of the project: ", NoSharedData(kInputs)));
      report.AddClaim(std::move(c));
    }
    for (Claim& c : MlperfClaims({})) report.AddClaim(std::move(c));
    for (Claim& c : SimumaxClaims({})) report.AddClaim(std::move(c));
    report.AddClaim(LibaiClaim({}));
    report.AddClaim(PrimusTimelineClaim({}));
    report.AddClaim(SimumaxOwnTableClaim({}));
    report.AddClaim(GroupClaim({}));
    report.AddClaim(RecipeClaim({}));
    return absl::OkStatus();
  }
  PIPELAB_ASSIGN_OR_RETURN(const ModernData data, LoadModernData(folder));
  PIPELAB_ASSIGN_OR_RETURN(const ModernMachines machines, LoadModernMachines());
  const std::vector<ModernResult> all = PredictAll(data, machines);
  for (Table (*table)(const std::vector<ModernResult>&) :
       {CoverageTable, ErrorTable, MemoryTable, TooLargeTable, SwitchTable, RepeatTable,
        AssumedTable}) {
    report.AddTable(table(all));
  }
  for (Claim& claim : ModernClaims(all)) report.AddClaim(std::move(claim));
  PIPELAB_RETURN_IF_ERROR(AddMlperf(folder, data.models, machines, &report));
  PIPELAB_RETURN_IF_ERROR(AddSimumax(folder, data.models, machines, &report));
  PIPELAB_RETURN_IF_ERROR(AddLibai(folder, &report));
  PIPELAB_RETURN_IF_ERROR(AddPrimus(folder, &report));
  std::vector<MeasuredLayout> runs = ModernLayouts(data, machines, all);
  PIPELAB_ASSIGN_OR_RETURN(std::vector<MeasuredLayout> in_nodes, NodeLayouts(folder));
  std::move(in_nodes.begin(), in_nodes.end(), std::back_inserter(runs));
  std::vector<LayoutGroup> groups = GroupsOf(runs);
  PIPELAB_RETURN_IF_ERROR(ExplainMisses(&groups));
  report.AddTable(GroupTable(groups));
  report.AddTable(MissTable(groups));
  report.AddClaim(GroupClaim(groups));
  if (!absl::GetFlag(FLAGS_recipes)) {
    report.AddClaim(RecipeClaim({}));
    return absl::OkStatus();
  }
  PIPELAB_ASSIGN_OR_RETURN(const auto choices, SearchForRecipes(all, data.models, machines));
  report.AddTable(RecipeTable(choices));
  report.AddTable(FasterTable(choices));
  report.AddClaim(RecipeClaim(choices));
  return absl::OkStatus();
}

}  // namespace

int RunModernModelsStudy(int argc, char** argv) {
  RegisterStudyFlags(__FILE__);
  StudyInfo info;
  info.name = "modern_models";
  info.title = "Today's models: published runs beside predictions";
  info.summary = "Published training runs of today's models beside predictions.";
  info.description =
      "1,857 published measurements of training speed, which are not part of the project "
      "(docs/development.md), and what the simulator predicts for those that it knows.";
  info.unrecorded = {"measured"};
  info.quick = {{"recipes", "false"}};
  info.quick_leaves_out = "the search for better layouts than the published ones";
  return RunStudyMain(argc, argv, info, Run);
}

}  // namespace pipelab
