// tools/bazel run //experiments:vocabulary
//
// Vocabulary parallelism (arXiv 2411.05288): MFU and memory of its systems, simulated beside what
// the paper measured.
#include "experiments/published/vocabulary.h"

#include <string>
#include <utility>
#include <vector>

#include "absl/flags/flag.h"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "experiments/report/report.h"
#include "experiments/scaling/specification_table.h"
#include "experiments/study/study_flags.h"
#include "experiments/study/study_list.h"
#include "experiments/study/study_main.h"
#include "experiments/vocabulary/vocabulary_logs.h"
#include "experiments/vocabulary/vocabulary_scaling.h"
#include "experiments/vocabulary/vocabulary_table.h"
#include "pipelines/cluster/catalog.h"
#include "tools/base/status_macros.h"

namespace pipelab {
namespace {

STUDY_FLAG(std::string, cluster, "dgx-a100", "a name or a file; the paper's has A100s of 80 GB");

absl::Status Run(StudyRun* study) {
  PIPELAB_ASSIGN_OR_RETURN(const VocabularyPaper paper, PublishedVocabulary());
  PIPELAB_ASSIGN_OR_RETURN(const ClusterSpec cluster,
                           LoadCluster("--cluster", absl::GetFlag(FLAGS_cluster)));
  PIPELAB_RETURN_IF_ERROR(study->Begin());
  PIPELAB_ASSIGN_OR_RETURN(const std::vector<VocabularyLogSteps> logs,
                           SimulateLogs(paper, cluster));
  PIPELAB_ASSIGN_OR_RETURN(const std::vector<VocabularyCell> cells,
                           SimulateCells(paper, logs, cluster));
  PIPELAB_ASSIGN_OR_RETURN(const std::vector<ScalingCell> scaling, SimulateScaling(paper, cluster));
  PIPELAB_ASSIGN_OR_RETURN(const double exchange, SimulateInterlacedExchange(paper, cluster));
  Report& report = study->report();
  for (Claim& claim : VocabularyClaims(cells)) report.AddClaim(std::move(claim));
  for (Claim& claim : VocabularyLogClaims(logs)) report.AddClaim(std::move(claim));
  for (Claim& claim : ScalingClaims(scaling)) report.AddClaim(std::move(claim));
  report.AddClaim(InterlacedExchangeClaim(exchange));
  report.AddTable(VocabularyTable(cells));
  report.AddTable(VocabularyLogsTable(logs));
  report.AddTable(VocabularyPassesTable(logs));
  report.AddTable(ScalingTable(scaling));
  report.AddTable(SpecificationTable({cluster}));
  report.AddNote(absl::StrCat("Published figures: ", paper.paper, "; ", paper.logs_source, "."));
  return absl::OkStatus();
}

}  // namespace

int RunVocabularyStudy(int argc, char** argv) {
  RegisterStudyFlags(__FILE__);
  StudyInfo info;
  info.name = "vocabulary";
  info.title = "A vocabulary divided among the devices of a pipeline";
  info.summary = "MFU and memory with 32k to 256k words, simulated beside the paper's tables.";
  return RunStudyMain(argc, argv, info, Run);
}

}  // namespace pipelab
