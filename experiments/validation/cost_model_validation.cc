// bazel run //experiments:cost_model_validation -- --rows=FILE.csv
//
// The cost model against measured training iterations and against Megatron-LM's published
// throughput, from one specification (docs/validation.md).
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/flags/flag.h"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "experiments/predict/predict_rows.h"
#include "experiments/predict/rows_file.h"
#include "experiments/published/megatron.h"
#include "experiments/report/report.h"
#include "experiments/scaling/specification_table.h"
#include "experiments/study/study_flags.h"
#include "experiments/study/study_list.h"
#include "experiments/study/study_main.h"
#include "experiments/validation/cross_validation.h"
#include "experiments/validation/fit_cluster.h"
#include "experiments/validation/validation_tables.h"
#include "pipelines/cluster/catalog.h"
#include "tools/base/status_macros.h"

namespace pipelab {
namespace {

STUDY_FLAG(std::string, rows, "",
           "CSV file of measured iterations; empty: Megatron-LM's published rows alone");
STUDY_FLAG(std::string, cluster, "dgx-a100", "cluster: a name or a file");
STUDY_FLAG(int, fit_steps, 600, "steps of the fit of each split");
STUDY_FLAG(int, fit_every, 5, "each split fits every N-th of its rows");
STUDY_FLAG(int, worst, 12, "rows that are printed with a reason");

absl::Status AddMeasured(const ClusterSpec& cluster, Report* report) {
  const std::string path = absl::GetFlag(FLAGS_rows);
  if (path.empty()) {
    for (Claim& claim : SplitClaims({})) report->AddClaim(std::move(claim));
    return absl::OkStatus();
  }
  PIPELAB_ASSIGN_OR_RETURN(const MeasuredRows rows, ReadMeasuredRows("--rows", path));
  FitOptions options;
  options.steps = absl::GetFlag(FLAGS_fit_steps);
  options.every = absl::GetFlag(FLAGS_fit_every);
  absl::StatusOr<std::vector<Split>> splits = CrossValidate(cluster, rows, options);
  if (!splits.ok()) {
    return absl::Status(splits.status().code(),
                        absl::StrCat("--rows=", path, ": ", splits.status().message()));
  }
  for (Claim& claim : SplitClaims(*splits)) report->AddClaim(std::move(claim));
  report->AddTable(SplitTable(*splits));
  PIPELAB_ASSIGN_OR_RETURN(const std::vector<double> predicted,
                           PredictRows(rows, cluster, absl::StrCat("--rows=", path)));
  const std::vector<RowError> errors = ErrorsOf(rows, predicted);
  report->AddTable(ErrorTable(errors));
  report->AddTable(WorstRowsTable(errors, cluster, absl::GetFlag(FLAGS_worst)));
  const RankingSummary ranking = RankPairs(errors);
  report->AddNote(
      absl::StrFormat("Ranking: of %d pairs of configurations of one model with equal batch and "
                      "GPUs whose measured "
                      "times differ by more than 10 %%, %d are in the right order (%.1f %%).",
                      ranking.pairs, ranking.right, ToPercent(ranking.share())));
  return absl::OkStatus();
}

absl::Status CheckFlags() {
  for (const auto& [name, value, least] :
       {std::make_tuple("worst", absl::GetFlag(FLAGS_worst), 0),
        std::make_tuple("fit_steps", absl::GetFlag(FLAGS_fit_steps), 0),
        std::make_tuple("fit_every", absl::GetFlag(FLAGS_fit_every), 1)}) {
    if (value >= least) continue;
    return absl::InvalidArgumentError(
        absl::StrCat("--", name, "=", value, ": must be at least ", least));
  }
  return absl::OkStatus();
}

absl::Status Run(StudyRun* study) {
  PIPELAB_RETURN_IF_ERROR(CheckFlags());
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
  report.AddClaim(MegatronMemoryClaim(megatron));
  report.AddTable(SpecificationTable({cluster}));
  return absl::OkStatus();
}

}  // namespace

int RunCostModelValidationStudy(int argc, char** argv) {
  RegisterStudyFlags(__FILE__);
  StudyInfo info;
  info.name = "cost_model_validation";
  info.title = "The cost model against real runs";
  info.summary =
      "Times that the simulator predicts for GPT training under Megatron-LM, from a model's graph "
      "and one specification of a cluster, beside measured and published ones.";
  info.unrecorded = {"rows"};
  return RunStudyMain(argc, argv, info, Run);
}

}  // namespace pipelab
