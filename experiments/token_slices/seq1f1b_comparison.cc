// tools/bazel run //experiments:seq1f1b_comparison
//
// 1F1B over slices of tokens: the table of Seq1F1B (arXiv 2406.03488), simulated.
#include <string>
#include <utility>
#include <vector>

#include "absl/flags/flag.h"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "experiments/published/seq1f1b.h"
#include "experiments/report/report.h"
#include "experiments/scaling/specification_table.h"
#include "experiments/study/study_flags.h"
#include "experiments/study/study_list.h"
#include "experiments/study/study_main.h"
#include "experiments/token_slices/seq1f1b_runs.h"
#include "experiments/token_slices/seq1f1b_table.h"
#include "pipelines/cluster/catalog.h"
#include "tools/base/status_macros.h"

namespace pipelab {
namespace seq1f1b_comparison_study {

STUDY_FLAG(std::string, cluster, "dgx-a100", "a name or a file; the paper's has A100s of 80 GB");

absl::Status Run(StudyRun* study) {
  PIPELAB_ASSIGN_OR_RETURN(const Seq1F1BPaper paper, PublishedSeq1F1B());
  PIPELAB_ASSIGN_OR_RETURN(const ClusterSpec cluster,
                           LoadCluster("--cluster", absl::GetFlag(FLAGS_cluster)));
  PIPELAB_RETURN_IF_ERROR(study->Begin());
  std::vector<Seq1F1BRows> all;
  for (const Seq1F1BChoice& choice : Seq1F1BChoices()) {
    all.push_back({choice, {}});
    for (const PublishedSeq1F1BRow& published : paper.rows) {
      PIPELAB_ASSIGN_OR_RETURN(Seq1F1BRow row, SimulateRow(published, choice, cluster));
      all.back().rows.push_back(std::move(row));
    }
  }
  Seq1F1BRunsByGap runs;
  for (const int64_t gap_us : {20, 100}) {
    runs.emplace_back();
    for (const PublishedSeq1F1BRun& run : paper.runs) {
      PIPELAB_ASSIGN_OR_RETURN(Seq1F1BRunSteps steps, SimulateRun(run, gap_us, cluster));
      runs.back().push_back(std::move(steps));
    }
  }
  Report& report = study->report();
  for (Claim& claim : Seq1F1BClaims(all, paper)) report.AddClaim(std::move(claim));
  for (Claim& claim : Seq1F1BHeldOutClaims(all)) report.AddClaim(std::move(claim));
  for (Claim& claim : Seq1F1BRunClaims(runs)) report.AddClaim(std::move(claim));
  report.AddTable(Seq1F1BTable(all, paper));
  report.AddTable(Seq1F1BChoicesTable(all));
  report.AddTable(Seq1F1BHeldOutTable(all));
  report.AddTable(Seq1F1BRunsTable(runs));
  report.AddTable(Seq1F1BRunsMemoryTable(runs));
  report.AddTable(SpecificationTable({cluster}));
  report.AddNote(absl::StrCat("Published figures: ", paper.paper, "; ", paper.runs_source, "."));
  return absl::OkStatus();
}

}  // namespace seq1f1b_comparison_study

int RunSeq1f1bComparisonStudy(int argc, char** argv) {
  RegisterStudyFlags(__FILE__);
  StudyInfo info;
  info.name = "seq1f1b_comparison";
  info.title = "1F1B over slices of tokens";
  info.summary = "Throughput and memory of long samples, simulated beside Seq1F1B's table.";
  return RunStudyMain(argc, argv, info, seq1f1b_comparison_study::Run);
}

}  // namespace pipelab
