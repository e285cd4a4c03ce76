// tools/bazel run //experiments:local_learning
//
// Stages that learn locally: PPLL's headline (arXiv 2411.12780) on one V100-like machine, what each
// way to train a pipeline costs and teaches, and real pipelines without a flush here.
#include <string>
#include <utility>
#include <vector>

#include "absl/flags/flag.h"
#include "experiments/local/local_tables.h"
#include "experiments/local/methods.h"
#include "experiments/local/paces.h"
#include "experiments/local/real_pipelines.h"
#include "experiments/report/report.h"
#include "experiments/scaling/specification_table.h"
#include "experiments/study/study_flags.h"
#include "experiments/study/study_list.h"
#include "experiments/study/study_main.h"
#include "models/data/fashion_mnist.h"
#include "models/data/package_cache.h"
#include "pipelines/cluster/catalog.h"
#include "tools/base/status_macros.h"

namespace pipelab {
namespace {

STUDY_FLAG(
    std::string, clusters, "dgx1-v100",
    "names or files (docs/clusters.md): the methods are priced on the first, claims are of all");
STUDY_FLAG(int64_t, train_batches, 1024,
           "batches of 64 images that each method trains on; 0: none");
STUDY_FLAG(int, real_runs, 15, "runs of the pipelines here; 0: none");

absl::Status AddMethods(const ClusterSpec& cluster, Report* report) {
  PIPELAB_ASSIGN_OR_RETURN(std::vector<Method> methods, PricedMethods(cluster));
  PIPELAB_ASSIGN_OR_RETURN(std::vector<Pace> paces, PricedPaces(cluster));
  const int64_t batches = absl::GetFlag(FLAGS_train_batches);
  if (batches > 0) {
    PIPELAB_ASSIGN_OR_RETURN(const ImageData images, FetchFashionMnist(DefaultDataCache()));
    PIPELAB_RETURN_IF_ERROR(TrainMethods(images, batches, &methods));
    PIPELAB_RETURN_IF_ERROR(TrainPaces(images, batches, &paces));
  }
  for (Claim& claim : MethodClaims(methods, batches)) report->AddClaim(std::move(claim));
  report->AddTable(MethodTable(methods, batches * kMethodBatch));
  for (Claim& claim : PaceClaims(paces)) report->AddClaim(std::move(claim));
  report->AddTable(PaceTable(paces, batches));
  return absl::OkStatus();
}

absl::Status Run(StudyRun* study) {
  PIPELAB_ASSIGN_OR_RETURN(const std::vector<ClusterSpec> clusters,
                           LoadClusters("--clusters", absl::GetFlag(FLAGS_clusters)));
  if (absl::GetFlag(FLAGS_train_batches) < 0 || absl::GetFlag(FLAGS_real_runs) < 0) {
    return absl::InvalidArgumentError("--train_batches and --real_runs: must be at least 0");
  }
  PIPELAB_RETURN_IF_ERROR(study->Begin());
  Report& report = study->report();
  PIPELAB_ASSIGN_OR_RETURN(const std::vector<LocalPoint> points, LocalPoints(clusters));
  for (Claim& claim : LocalClaims(points)) report.AddClaim(std::move(claim));
  report.AddTable(LocalTable(points));
  PIPELAB_RETURN_IF_ERROR(AddMethods(clusters[0], &report));
  if (absl::GetFlag(FLAGS_real_runs) > 0) {
    PIPELAB_ASSIGN_OR_RETURN(const std::vector<RealPipeline> real,
                             RunRealPipelines(absl::GetFlag(FLAGS_real_runs)));
    for (Claim& claim : RealPipelineClaims(real)) report.AddClaim(std::move(claim));
    report.AddTable(RealPipelineTable(real));
  }
  report.AddTable(SpecificationTable(clusters));
  report.AddNote(
      "PPLL's abstract names ResNet and ViT, CIFAR-10 and 4 GPUs. Its sizes, heads, cuts, batches "
      "and numbers are not in the sources at hand: ResNet-110 and its cuts are those of InfoPro, "
      "on "
      "whose kind of local learning it rests, the ViT is ViT-S on patches of 4, and claims are of "
      "the whole range.");
  return absl::OkStatus();
}

}  // namespace

int RunLocalLearningStudy(int argc, char** argv) {
  RegisterStudyFlags(__FILE__);
  StudyInfo info;
  info.name = "local_learning";
  info.title = "Stages that learn locally";
  info.summary =
      "What a pipeline gains whose stages learn locally: PPLL's headline, simulated, and what each "
      "way to train a pipeline costs and teaches.";
  info.quick = {{"train_batches", "0"}, {"real_runs", "0"}};
  info.quick_leaves_out = "accuracies after equal samples, and the pipelines run here";
  return RunStudyMain(argc, argv, info, Run);
}

}  // namespace pipelab
