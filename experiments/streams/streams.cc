// tools/bazel run //experiments:streams
//
// Pipelines over a stream: PARTIME's speed-up (arXiv 2210.09147) simulated, arrivals that are
// faster than the pipeline, and what late gradients teach on frames of a camera and on text.
#include <algorithm>
#include <iterator>
#include <string>
#include <utility>
#include <vector>

#include "absl/flags/flag.h"
#include "absl/status/status.h"
#include "experiments/report/report.h"
#include "experiments/scaling/specification_table.h"
#include "experiments/streams/stream_learning.h"
#include "experiments/streams/stream_points.h"
#include "experiments/study/study_flags.h"
#include "experiments/study/study_list.h"
#include "experiments/study/study_main.h"
#include "models/data/austen.h"
#include "models/data/camera_frames.h"
#include "models/data/package_cache.h"
#include "models/data/text_batches.h"
#include "models/data/text_stream.h"
#include "pipelines/cluster/catalog.h"
#include "tools/base/status_macros.h"

namespace pipelab {
namespace {

STUDY_FLAG(std::string, clusters, "dgx1-v100,p100-pcie",
           "names or files (docs/clusters.md); claims of the speed-up are of the first");
STUDY_FLAG(int, text_samples, 4000,
           "samples of each stream of text to learn from, at most what the novels have; 0: neither "
           "text nor frames");

constexpr int64_t kReduce = 8;   // frames of 48 x 36
constexpr int64_t kWindow = 32;  // bytes of a sample, window by window
constexpr int64_t kContext = 8;  // bytes before the next one, byte by byte

absl::Status AddLessons(int text_samples, Report* report) {
  PIPELAB_ASSIGN_OR_RETURN(const FrameStream frames,
                           FetchCameraFrames(DefaultDataCache(), kReduce));
  PIPELAB_ASSIGN_OR_RETURN(std::vector<StreamLesson> lessons, FrameLessons(frames));
  PIPELAB_ASSIGN_OR_RETURN(const TextCorpus novels, FetchAusten(DefaultDataCache()));
  PIPELAB_ASSIGN_OR_RETURN(const TextData text, MakeTextData(novels, kWindow, /*seed=*/1));
  std::vector<std::string> ends = {frames.end};
  for (const auto& [context, stride] : {std::pair(kWindow, kWindow), {kContext, int64_t{1}}}) {
    const TextStream stream(text.train->tokens(), text.vocabulary.size(), context, stride);
    PIPELAB_ASSIGN_OR_RETURN(std::vector<StreamLesson> learned, TextLessons(stream, text_samples));
    std::move(learned.begin(), learned.end(), std::back_inserter(lessons));
    if (text_samples > stream.examples()) ends.push_back(stream.End());
  }
  for (Claim& claim : LessonClaims(lessons)) report->AddClaim(std::move(claim));
  Table table = LessonTable(lessons, CopyError(frames));
  for (std::string& end : ends) {
    if (!end.empty()) table.AddNote(std::move(end));
  }
  report->AddTable(std::move(table));
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

int RunStreamsStudy(int argc, char** argv) {
  RegisterStudyFlags(__FILE__);
  StudyInfo info;
  info.name = "streams";
  info.title = "Pipelines over a stream";
  info.summary =
      "What a pipeline over a stream gains and learns: PARTIME's speed-up, simulated, arrivals, "
      "and "
      "late gradients on real frames and on text.";
  info.quick = {{"text_samples", "0"}};
  info.quick_leaves_out = "learning from frames and text";
  return RunStudyMain(argc, argv, info, Run);
}

}  // namespace pipelab
