// tools/bazel run //experiments:gnn_split
//
// Split parallelism of graph networks (GSplit, arXiv 2303.13775) and its rivals: how a real graph's
// batches are divided, epochs on V100s simulated, and a step on this machine's cores.
#include <string>
#include <utility>

#include "absl/flags/flag.h"
#include "absl/status/status.h"
#include "experiments/flags/option_checks.h"
#include "experiments/graph_split/split_batches.h"
#include "experiments/graph_split/split_epochs.h"
#include "experiments/graph_split/split_steps.h"
#include "experiments/report/report.h"
#include "experiments/study/study_flags.h"
#include "experiments/study/study_list.h"
#include "experiments/study/study_main.h"
#include "models/data/package_cache.h"
#include "models/data/text_graph.h"
#include "models/data/theorem_graph.h"
#include "tools/base/status_macros.h"

namespace pipelab {
namespace {

STUDY_FLAG(int, orkut_scale, 16, "Orkut's vertices, batch and caches are divided by this");
STUDY_FLAG(int, papers_scale, 128, "papers100M's are divided by this");
STUDY_FLAG(int, batches, 4, "real batches that an epoch's times are the mean of");
STUDY_FLAG(int, steps, 9, "steps of each kind and width that are timed on this machine");

// The batch of 1,024 has a target for each of 2 x 4 members.
constexpr int kLargestScale = 128;

absl::Status Run(StudyRun* study) {
  GraphEpochsSize size;
  size.orkut_scale = absl::GetFlag(FLAGS_orkut_scale);
  size.papers_scale = absl::GetFlag(FLAGS_papers_scale);
  size.batches = absl::GetFlag(FLAGS_batches);
  PIPELAB_RETURN_IF_ERROR(CheckRange("--orkut_scale", size.orkut_scale, 1, kLargestScale));
  PIPELAB_RETURN_IF_ERROR(CheckRange("--papers_scale", size.papers_scale, 1, kLargestScale));
  PIPELAB_RETURN_IF_ERROR(CheckRange("--batches", size.batches, 1, 100));
  PIPELAB_RETURN_IF_ERROR(CheckRange("--steps", absl::GetFlag(FLAGS_steps), 1, 1000));
  PIPELAB_RETURN_IF_ERROR(study->Begin());
  PIPELAB_ASSIGN_OR_RETURN(const TextGraph text, FetchTheoremGraph(DefaultDataCache()));
  const GraphData theorems = ToGraphData(text, /*width=*/512);
  PIPELAB_ASSIGN_OR_RETURN(const BatchCounts counts, CountBatches(theorems, BatchCountsSize()));
  StepSize steps;
  steps.steps = absl::GetFlag(FLAGS_steps);
  PIPELAB_ASSIGN_OR_RETURN(const auto times, MeasureSteps(text, steps));
  PIPELAB_ASSIGN_OR_RETURN(const GraphEpochs epochs, SimulateGraphEpochs(size));
  study->report().AddTable(MethodTable(counts, epochs.paper));
  for (Claim& claim : BatchClaims(counts)) study->report().AddClaim(std::move(claim));
  for (Table& table : EpochTables(epochs)) study->report().AddTable(std::move(table));
  for (Claim& claim : EpochClaims(epochs)) study->report().AddClaim(std::move(claim));
  study->report().AddTable(StepTable(times, steps));
  for (Claim& claim : StepClaims(times)) study->report().AddClaim(std::move(claim));
  return absl::OkStatus();
}

}  // namespace

int RunGnnSplitStudy(int argc, char** argv) {
  RegisterStudyFlags(__FILE__);
  StudyInfo info;
  info.name = "gnn_split";
  info.title = "Split parallelism of graph networks";
  info.summary =
      "Batches of a graph network divided over devices by vertices, beside data-parallel copies, "
      "divided caches and push-pull: counts, simulated epochs, a real step.";
  info.quick = {{"orkut_scale", "64"}, {"batches", "1"}, {"steps", "3"}};
  info.quick_leaves_out = "3 of 4 batches, three quarters of Orkut's vertices, and 6 of 9 steps";
  return RunStudyMain(argc, argv, info, Run);
}

}  // namespace pipelab
