// tools/bazel run //experiments:terapipe_comparison
//
// What slices of tokens gain in a pipeline: rows of TeraPipe (arXiv 2102.07988), on paper.
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/flags/flag.h"
#include "absl/strings/str_cat.h"
#include "experiments/published/terapipe.h"
#include "experiments/report/report.h"
#include "experiments/scaling/specification_table.h"
#include "experiments/study_main.h"
#include "experiments/token_slices/slice_gains.h"
#include "glog/logging.h"
#include "pipelines/cluster/catalog.h"
#include "tools/base/status_macros.h"

ABSL_FLAG(std::string, cluster, "", "cluster in the place of the paper's: a name or a file");
ABSL_FLAG(int64_t, token_step, 64, "slices have a multiple of so many tokens; divides 2048");

namespace pipelab {
namespace {

absl::Status Run(StudyRun* study) {
  PIPELAB_ASSIGN_OR_RETURN(const TeraPipePaper paper, PublishedTeraPipe());
  const std::string name = absl::GetFlag(FLAGS_cluster);
  PIPELAB_ASSIGN_OR_RETURN(const ClusterSpec cluster,
                           LoadCluster("--cluster", name.empty() ? paper.cluster : name));
  SliceOptions options;
  options.token_step = absl::GetFlag(FLAGS_token_step);
  if (options.token_step < 8 || 2048 % options.token_step != 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("--token_step=", options.token_step, ": must be at least 8 and divide 2048"));
  }
  PIPELAB_RETURN_IF_ERROR(study->Begin());
  Report& report = study->report();
  std::vector<SliceGain> gains;
  for (const PublishedTeraPipeRow& row : paper.rows) {
    LOG(INFO) << "row " << row.row << ": " << row.model << " on " << row.gpus << " GPUs";
    PIPELAB_ASSIGN_OR_RETURN(SliceGain gain, GainOfSlices(row, cluster, options));
    gains.push_back(std::move(gain));
  }
  for (Claim& claim : SliceClaims(gains)) report.AddClaim(std::move(claim));
  report.AddTable(SliceTable(gains));
  report.AddTable(SpecificationTable({cluster}));
  report.AddNote(absl::StrCat("Published figures: ", paper.paper, "."));
  report.AddNote(
      "Both columns are the best slicings by the paper's dynamic program with the cost model's "
      "times: of whole samples, and of tokens. Messages between stages are left out of both.");
  return absl::OkStatus();
}

}  // namespace
}  // namespace pipelab

int main(int argc, char** argv) {
  pipelab::StudyInfo info;
  info.name = "terapipe_comparison";
  info.title = "Slices of tokens in a pipeline";
  info.summary =
      "What slices of tokens gain over whole samples: rows of TeraPipe's table, on paper.";
  info.quick = {{"token_step", "128"}};
  info.quick_leaves_out = "slices of a multiple of 64 tokens: 128 instead";
  return pipelab::RunStudyMain(argc, argv, info, pipelab::Run);
}
