// tools/bazel run //experiments:streams
//
// Pipelines over a stream: PARTIME's speed-up (arXiv 2210.09147) simulated, arrivals that are
// faster than the pipeline, and what late gradients teach on frames of a camera and on text.
#include <string>
#include <utility>
#include <vector>

#include "absl/flags/flag.h"
#include "absl/status/status.h"
#include "experiments/report/report.h"
#include "experiments/scaling/specification_table.h"
#include "experiments/streams/stream_learning.h"
#include "experiments/streams/stream_points.h"
#include "experiments/study_main.h"
#include "models/data/austen.h"
#include "models/data/package_cache.h"
#include "pipelines/cluster/catalog.h"
#include "tools/base/status_macros.h"

ABSL_FLAG(std::string, clusters, "dgx1-v100,p100-pcie",
          "names or files (docs/clusters.md); claims of the speed-up are of the first");
ABSL_FLAG(int, text_samples, 2000, "windows of text to learn from; 0: neither text nor frames");

namespace pipelab {
namespace {

constexpr int64_t kReduce = 8;  // frames of 48 x 36
constexpr int64_t kTokens = 32;

absl::Status AddLessons(int text_samples, Report* report) {
  PIPELAB_ASSIGN_OR_RETURN(const FrameStream frames,
                           FetchCameraFrames(DefaultDataCache(), kReduce));
  PIPELAB_ASSIGN_OR_RETURN(std::vector<StreamLesson> lessons, FrameLessons(frames));
  for (Claim& claim : LessonClaims(lessons)) report->AddClaim(std::move(claim));
  PIPELAB_ASSIGN_OR_RETURN(const TextCorpus novels, FetchAusten(DefaultDataCache()));
  PIPELAB_ASSIGN_OR_RETURN(const TextData text, MakeTextData(novels, kTokens, /*seed=*/1));
  PIPELAB_ASSIGN_OR_RETURN(const std::vector<StreamLesson> bytes,
                           TextLessons(*text.train, kTokens, text_samples));
  lessons.insert(lessons.end(), bytes.begin(), bytes.end());
  report->AddTable(LessonTable(lessons, CopyError(frames)));
  return absl::OkStatus();
}

absl::Status Run(StudyRun* study) {
  PIPELAB_ASSIGN_OR_RETURN(const std::vector<ClusterSpec> clusters,
                           LoadClusters("--clusters", absl::GetFlag(FLAGS_clusters)));
  const int text_samples = absl::GetFlag(FLAGS_text_samples);
  if (text_samples < 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("--text_samples=", text_samples, ": must be at least 0"));
  }
  PIPELAB_RETURN_IF_ERROR(study->Begin());
  Report& report = study->report();
  PIPELAB_ASSIGN_OR_RETURN(const std::vector<StreamPoint> points, StreamPoints(clusters));
  for (Claim& claim : StreamClaims(points)) report.AddClaim(std::move(claim));
  report.AddTable(StreamTable(points));
  for (const StreamPoint& p : points) {
    if (p.kind == TickKind::kTraining && p.devices == 8 && p.side == 256 && p.layers == 30 &&
        p.cluster == clusters[0].name) {
      report.AddTable(ArrivalTable(p));
    }
  }
  if (text_samples > 0) {
    PIPELAB_RETURN_IF_ERROR(AddLessons(text_samples, &report));
  } else {
    for (Claim& claim : LessonClaims({})) report.AddClaim(std::move(claim));
  }
  report.AddTable(SpecificationTable(clusters));
  report.AddNote(
      "The paper's curves are not at hand. The network is that of the authors' scripts, which have "
      "30 layers and a comment that says 150; both are here.");
  return absl::OkStatus();
}

}  // namespace
}  // namespace pipelab

int main(int argc, char** argv) {
  pipelab::StudyInfo info;
  info.name = "streams";
  info.title = "Pipelines over a stream";
  info.summary =
      "What a pipeline over a stream gains and learns: PARTIME's speed-up, simulated, arrivals, "
      "and "
      "late gradients on real frames and on text.";
  info.quick = {{"text_samples", "0"}};
  info.quick_leaves_out = "learning from frames and text";
  return pipelab::RunStudyMain(argc, argv, info, pipelab::Run);
}
