// tools/bazel run //experiments:bubble_filling
//
// Other jobs in the bubbles of a training: the study of PipeFill (arXiv 2410.07192), on paper, what
// the bubble of every scheme holds, and real jobs in the gaps of a small training here.
#include <string>
#include <utility>
#include <vector>

#include "absl/flags/flag.h"
#include "absl/strings/str_split.h"
#include "experiments/fill/fill_tables.h"
#include "experiments/fill/real_filling.h"
#include "experiments/report/report.h"
#include "experiments/scaling/specification_table.h"
#include "experiments/study/study_flags.h"
#include "experiments/study/study_list.h"
#include "experiments/study/study_main.h"
#include "pipelines/cluster/catalog.h"
#include "pipelines/schedules/catalog.h"
#include "tools/base/status_macros.h"

namespace pipelab {
namespace {

STUDY_FLAG(std::string, clusters, "dgx1-v100,p3.16xlarge",
           "names or files (docs/clusters.md): tables are of the first, claims of all");
STUDY_FLAG(std::string, schemes, "", "schemes of the last table; empty: all");
STUDY_FLAG(int64_t, requests, 2000, "jobs of the table of policies");
STUDY_FLAG(int, real_steps, 30, "steps of the training here; 0: no training");
STUDY_FLAG(int64_t, real_pictures, 1, "pictures that its fill jobs classify at a time");

absl::Status Run(StudyRun* study) {
  FillStudyOptions options;
  PIPELAB_ASSIGN_OR_RETURN(const std::vector<ClusterSpec> clusters,
                           LoadClusters("--clusters", absl::GetFlag(FLAGS_clusters)));
  options.cluster = clusters[0];
  options.others.assign(clusters.begin() + 1, clusters.end());
  options.schemes = absl::StrSplit(absl::GetFlag(FLAGS_schemes), ',', absl::SkipEmpty());
  for (const std::string& scheme : options.schemes) {
    PIPELAB_RETURN_IF_ERROR(FindScheme(scheme, "--schemes").status());
  }
  options.requests = absl::GetFlag(FLAGS_requests);
  if (options.requests < 1 || absl::GetFlag(FLAGS_real_steps) < 0 ||
      absl::GetFlag(FLAGS_real_pictures) < 1) {
    return absl::InvalidArgumentError(
        "--requests and --real_pictures: must be at least 1, --real_steps at least 0");
  }
  PIPELAB_RETURN_IF_ERROR(study->Begin());
  Report& report = study->report();
  PIPELAB_ASSIGN_OR_RETURN(const FillStudy results, RunFillStudy(options));
  for (Claim& claim : FillClaims(results)) report.AddClaim(std::move(claim));
  report.AddTable(ScaleTable(results));
  report.AddTable(KindTable(results));
  report.AddTable(SchemeTable(results));
  PIPELAB_ASSIGN_OR_RETURN(Table policies, PolicyTable(results));
  report.AddTable(std::move(policies));
  if (absl::GetFlag(FLAGS_real_steps) > 0) {
    RealFillingOptions here;
    here.steps = absl::GetFlag(FLAGS_real_steps);
    here.of_piece = absl::GetFlag(FLAGS_real_pictures);
    PIPELAB_ASSIGN_OR_RETURN(const RealFilling real, RunRealFilling(here));
    for (Claim& claim : RealFillingClaims(real)) report.AddClaim(std::move(claim));
    report.AddTable(RealFillingTable(real));
  }
  report.AddTable(SpecificationTable(clusters));
  report.AddNote(
      "The training: 48 blocks of 8192, 2,048 tokens, 16 stages of 8-way tensor groups, 1F1B, "
      "micro-batches of 2, blocks recomputed (not with token slices, which blocks do not "
      "know), 1,024 samples a step. Sizes, machine and the numbers "
      "that fill jobs compute with are not in the sources at hand and assumed. EfficientNet and "
      "Swin, which the paper fills with as well, are not in the zoo; ResNet-50 stands for "
      "pictures.");
  report.AddNote(
      "Gain: products of the fill jobs over those of the training, the mean of the jobs. Worth: "
      "GPUs "
      "of their own that do as much. No rate is fitted to a published figure: each job's is that "
      "of "
      "its own roofline on this cluster. Gaps are predicted, so the training is not slowed down.");
  return absl::OkStatus();
}

}  // namespace

int RunBubbleFillingStudy(int argc, char** argv) {
  RegisterStudyFlags(__FILE__);
  StudyInfo info;
  info.name = "bubble_filling";
  info.title = "Other jobs in the bubbles of a training";
  info.summary =
      "What other jobs gain in the gaps of a training: PipeFill's scaling table, simulated, and "
      "every scheme's bubble.";
  info.quick = {{"requests", "500"}};
  info.quick_leaves_out = "three quarters of the jobs that the policies order";
  return RunStudyMain(argc, argv, info, Run);
}

}  // namespace pipelab
