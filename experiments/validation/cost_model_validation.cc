// bazel run //experiments:cost_model_validation -- --rows=FILE.csv
//
// The cost model against measured training iterations and against Megatron-LM's published
// throughput, from one specification (docs/validation.md).
#include <string>
#include <utility>
#include <vector>

#include "absl/flags/flag.h"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "experiments/published/megatron.h"
#include "experiments/report/report.h"
#include "experiments/scaling/specification_table.h"
#include "experiments/study_main.h"
#include "experiments/validation/predict_rows.h"
#include "experiments/validation/rows_file.h"
#include "experiments/validation/validation_tables.h"
#include "pipelines/cluster/catalog.h"
#include "tools/base/status_macros.h"

ABSL_FLAG(std::string, rows, "",
          "CSV file of measured iterations; empty: Megatron-LM's published rows alone");
ABSL_FLAG(std::string, cluster, "dgx-a100", "cluster: a name or a file");
ABSL_FLAG(int, worst, 12, "rows that are printed with a reason");

namespace pipelab {
namespace {

constexpr double kMostError = 0.10;

Claim MeasuredClaim() {
  Claim c = OwnClaim("validation.measured_rows",
                     "mean error of predicted iterations that calibrated nothing (measured by "
                     "vTrain's authors on A100s)");
  c.unit = "%";
  return c;
}

absl::Status AddMeasured(const ClusterSpec& cluster, Report* report) {
  const std::string path = absl::GetFlag(FLAGS_rows);
  if (path.empty()) {
    Claim claim = MeasuredClaim();
    NotMade(&claim,
            "no --rows=FILE.csv was given: the measured iterations are not part of the project");
    report->AddClaim(std::move(claim));
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
  const double mean = Summarise(validation).mean;
  Claim claim = MeasuredClaim();
  Found(&claim, Origin::kSimulated, ToPercent(mean));
  MetIf(&claim, mean <= kMostError, "at most 10 %", "docs/validation.md, what it misses");
  report->AddClaim(std::move(claim));
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

absl::Status Run(StudyRun* study) {
  if (absl::GetFlag(FLAGS_worst) < 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("--worst=", absl::GetFlag(FLAGS_worst), ": must not be negative"));
  }
  PIPELAB_ASSIGN_OR_RETURN(const ClusterSpec cluster,
                           LoadCluster("--cluster", absl::GetFlag(FLAGS_cluster)));
  PIPELAB_ASSIGN_OR_RETURN(const MegatronPaper paper, PublishedMegatron());
  PIPELAB_RETURN_IF_ERROR(study->Begin());
  Report& report = study->report();
  PIPELAB_RETURN_IF_ERROR(AddMeasured(cluster, &report));
  PIPELAB_ASSIGN_OR_RETURN(const std::vector<MegatronResult> megatron,
                           PredictMegatron(paper, cluster));
  report.AddTable(MegatronTable(paper, megatron));
  report.AddClaim(MegatronClaim(megatron));
  report.AddTable(SpecificationTable({cluster}));
  return absl::OkStatus();
}

}  // namespace
}  // namespace pipelab

int main(int argc, char** argv) {
  pipelab::StudyInfo info;
  info.name = "cost_model_validation";
  info.title = "The cost model against real runs";
  info.summary =
      "Times that the simulator predicts for GPT training under Megatron-LM, from a model's graph "
      "and one specification of a cluster, beside measured and published ones.";
  info.unrecorded = {"rows"};
  return pipelab::RunStudyMain(argc, argv, info, pipelab::Run);
}
