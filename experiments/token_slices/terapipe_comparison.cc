// tools/bazel run //experiments:terapipe_comparison
//
// What slices of tokens gain in a pipeline: rows of TeraPipe (arXiv 2102.07988), simulated.
#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "absl/flags/flag.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "experiments/published/terapipe.h"
#include "experiments/report/report.h"
#include "experiments/scaling/specification_table.h"
#include "experiments/study/study_flags.h"
#include "experiments/study/study_list.h"
#include "experiments/study/study_main.h"
#include "experiments/token_slices/slice_gains.h"
#include "glog/logging.h"
#include "pipelines/cluster/catalog.h"
#include "tools/base/status_macros.h"

namespace pipelab {
namespace terapipe_comparison_study {

STUDY_FLAG(std::string, cluster, "", "cluster instead of the paper's: a name or a file");
STUDY_FLAG(std::vector<std::string>, slices,
           std::vector<std::string>({"2", "3", "4", "6", "8", "12", "16", "24", "32"}),
           "numbers of slices to try for a sample's 2048 tokens");

// From one flow's 10 of 25 Gbit/s to the line rate.
constexpr int kLeastPercent = 40, kStepPercent = 10;

absl::StatusOr<std::vector<int>> SlicesFromFlag() {
  std::vector<int> slices;
  for (const std::string& word : absl::GetFlag(FLAGS_slices)) {
    int number = 0;
    if (!absl::SimpleAtoi(word, &number) || number < 2 || number > 256) {
      return absl::InvalidArgumentError(
          absl::StrCat("--slices: \"", word, "\": must be a whole number from 2 to 256"));
    }
    slices.push_back(number);
  }
  if (slices.empty()) return absl::InvalidArgumentError("--slices: must name a number, such as 8");
  return slices;
}

absl::StatusOr<std::vector<SliceGain>> GainsOfRows(const TeraPipePaper& paper,
                                                   const ClusterSpec& cluster,
                                                   const std::vector<int>& slices) {
  std::vector<SliceGain> gains;
  for (const PublishedTeraPipeRow& row : paper.rows) {
    LOG(INFO) << "row " << row.row << ": " << row.model << " on " << row.gpus << " GPUs";
    PIPELAB_ASSIGN_OR_RETURN(const std::vector<SliceGain> of_row,
                             GainsOfSlices(row, cluster, slices));
    gains.insert(gains.end(), of_row.begin(), of_row.end());
  }
  return gains;
}

absl::Status Run(StudyRun* study) {
  PIPELAB_ASSIGN_OR_RETURN(const TeraPipePaper paper, PublishedTeraPipe());
  const std::string name = absl::GetFlag(FLAGS_cluster);
  PIPELAB_ASSIGN_OR_RETURN(const ClusterSpec cluster,
                           LoadCluster("--cluster", name.empty() ? paper.cluster : name));
  PIPELAB_ASSIGN_OR_RETURN(const std::vector<int> slices, SlicesFromFlag());
  PIPELAB_RETURN_IF_ERROR(study->Begin());
  Report& report = study->report();
  std::vector<NetworkCase> cases;
  for (int percent = kLeastPercent; percent <= 100; percent += kStepPercent) {
    const ClusterSpec slower = WithSlowerNetwork(cluster, percent / 100.0);
    PIPELAB_ASSIGN_OR_RETURN(std::vector<SliceGain> on_it, GainsOfRows(paper, slower, slices));
    const double bytes = slower.levels.back().connection.bandwidth.value.value();
    cases.push_back({std::round(bytes * 8e-7) * 1e-2, std::move(on_it)});
  }
  const std::vector<SliceGain>& gains = cases.back().gains;  // at the line rate
  for (Claim& claim : SliceClaims(gains, cases)) report.AddClaim(std::move(claim));
  report.AddTable(SliceTable(gains));
  report.AddTable(NetworkTable(cases));
  report.AddTable(SpecificationTable({cluster}));
  report.AddNote(absl::StrCat("Published figures: ", paper.paper, "."));
  report.AddNote(
      "Each second is a simulated step with all messages, sums and the optimizer; of micro-batch "
      "sizes and numbers of slices the fastest. ranks: tp-dp-pp has a row's replicas side by side "
      "in a node, tp-pp-dp each on nodes of its own; claims take the faster one, without slices "
      "and with them.");
  return absl::OkStatus();
}

}  // namespace terapipe_comparison_study

int RunTerapipeComparisonStudy(int argc, char** argv) {
  RegisterStudyFlags(__FILE__);
  StudyInfo info;
  info.name = "terapipe_comparison";
  info.title = "Slices of tokens in a pipeline";
  info.summary =
      "What slices of tokens gain over whole samples: rows of TeraPipe's table, simulated.";
  info.quick = {{"slices", "4,8,16"}};
  info.quick_leaves_out = "other numbers of slices than 4, 8 and 16";
  return RunStudyMain(argc, argv, info, terapipe_comparison_study::Run);
}

}  // namespace pipelab
