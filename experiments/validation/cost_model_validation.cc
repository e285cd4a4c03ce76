// bazel run //experiments:cost_model_validation -- --rows=FILE.csv
//
// The cost model against measured training iterations and against Megatron-LM's published
// throughput, from one specification (docs/validation.md).
#include <cstdio>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/flags/flag.h"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "experiments/flags.h"
#include "experiments/published/megatron.h"
#include "experiments/report/report.h"
#include "experiments/scaling/specification_table.h"
#include "experiments/validation/predict_rows.h"
#include "experiments/validation/rows_file.h"
#include "experiments/validation/validation_tables.h"
#include "pipelines/cluster/catalog.h"
#include "tools/base/file.h"
#include "tools/base/status_macros.h"

ABSL_FLAG(std::string, rows, "",
          "CSV file of measured iterations; empty: Megatron-LM's published rows alone");
ABSL_FLAG(std::string, cluster, "dgx-a100", "cluster: a name or a file");
ABSL_FLAG(int, worst, 12, "rows that are printed with a reason");
ABSL_FLAG(std::string, out, "", "folder of the report; empty: results/NAME of the checkout");

namespace pipelab {
namespace {

constexpr char kName[] = "cost_model_validation";
constexpr char kSummary[] =
    "Times that the simulator predicts for GPT training under Megatron-LM, from a model's graph "
    "and one specification of a cluster, beside measured and published ones.";

Report MakeReport() {
  ReportOptions about;
  about.name = kName;
  about.title = "The cost model against real runs";
  about.summary = kSummary;
  about.command = absl::StrCat("tools/bazel run //experiments:", kName, " -- --rows=FILE.csv");
  Report report(about);
  // A file's place says nothing to others.
  report.AddConfig("cluster", absl::GetFlag(FLAGS_cluster));
  report.AddConfig("worst", absl::GetFlag(FLAGS_worst));
  return report;
}

absl::Status AddMeasured(const ClusterSpec& cluster, Report* report) {
  const std::string path = absl::GetFlag(FLAGS_rows);
  if (path.empty()) {
    report->AddNote(
        "No --rows=FILE.csv was given: the measured iterations, which are not part of the project, "
        "are left out.");
    return absl::OkStatus();
  }
  PIPELAB_ASSIGN_OR_RETURN(const MeasuredRows rows, ReadMeasuredRows("--rows", path));
  PIPELAB_ASSIGN_OR_RETURN(const std::vector<double> predicted,
                           PredictRows(rows, cluster, absl::StrCat("--rows=", path)));
  const std::vector<RowError> validation = ErrorsOf(rows, predicted, InValidation);
  const std::vector<RowError> all = ErrorsOf(rows, predicted, [](size_t) { return true; });
  if (validation.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat("--rows=", path, ": no row is measured and outside of the calibration third"));
  }
  report->AddTable(ErrorTable(validation, ErrorsOf(rows, predicted, InCalibration)));
  report->AddTable(WorstRowsTable(validation, all, cluster, absl::GetFlag(FLAGS_worst)));
  const RankingSummary ranking = RankPairs(validation);
  report->AddNote(
      absl::StrFormat("Ranking: of %d pairs of configurations of one model with equal batch and "
                      "GPUs whose measured "
                      "times differ by more than 10 %%, %d are in the right order (%.1f %%).",
                      ranking.pairs, ranking.right, ToPercent(ranking.share())));
  return absl::OkStatus();
}

absl::Status Run(const std::vector<std::string>& words) {
  if (!words.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat("'", words[0], "': not an option; options begin with --"));
  }
  if (absl::GetFlag(FLAGS_worst) < 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("--worst=", absl::GetFlag(FLAGS_worst), ": must not be negative"));
  }
  PIPELAB_ASSIGN_OR_RETURN(const ClusterSpec cluster,
                           LoadCluster("--cluster", absl::GetFlag(FLAGS_cluster)));
  PIPELAB_ASSIGN_OR_RETURN(const MegatronPaper paper, PublishedMegatron());
  const std::string out = ResolveOutputPath(absl::GetFlag(FLAGS_out), kName);
  PIPELAB_ASSIGN_OR_RETURN(OutputDirectory folder, OutputDirectory::Create("--out", out));
  Report report = MakeReport();
  PIPELAB_RETURN_IF_ERROR(AddMeasured(cluster, &report));
  PIPELAB_ASSIGN_OR_RETURN(const std::vector<MegatronResult> megatron,
                           PredictMegatron(paper, cluster));
  report.AddTable(MegatronTable(paper, megatron));
  report.AddTable(SpecificationTable({cluster}));
  PIPELAB_RETURN_IF_ERROR(report.WriteTo(&folder));
  std::printf("%s\nreport: %s/report.html\n", report.ToTerminal().c_str(), out.c_str());
  return absl::OkStatus();
}

}  // namespace
}  // namespace pipelab

int main(int argc, char** argv) {
  return pipelab::RunMain(argc, argv, absl::StrCat("//experiments:", pipelab::kName),
                          pipelab::kSummary, pipelab::Run);
}
