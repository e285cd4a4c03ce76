// tools/bazel run //experiments:gnn_preparation
//
// Graph networks whose batches are prepared as stages of a pipeline (SALIENT, arXiv 2110.08450):
// real trainings on the theorems of set.mm and the synsets of WordNet, and the paper's epochs.
#include <string>
#include <utility>
#include <vector>

#include "absl/flags/flag.h"
#include "absl/status/status.h"
#include "experiments/flags/option_checks.h"
#include "experiments/graphs/paper_epochs.h"
#include "experiments/graphs/preparation_study.h"
#include "experiments/report/report.h"
#include "experiments/study/study_flags.h"
#include "experiments/study/study_list.h"
#include "experiments/study/study_main.h"
#include "models/data/package_cache.h"
#include "models/data/theorem_graph.h"
#include "models/data/wordnet_graph.h"
#include "tools/base/rng.h"
#include "tools/base/status_macros.h"

namespace pipelab {
namespace {

STUDY_FLAG(int, epochs, 12, "of each network");
STUDY_FLAG(int, steps, 0, "of an epoch that is timed; 0: all");
STUDY_FLAG(int, repeats, 3, "of each timed epoch");
STUDY_FLAG(int, batch, 1024, "targets of a step");
STUDY_FLAG(int, hidden, 256, "width of the network");
STUDY_FLAG(int, width, 128, "of a vertex's row");
STUDY_FLAG(double, dropout, 0.2, "of the network");
STUDY_FLAG(bool, synthetic, false, "a generated graph in the place of the real ones");

TextGraph GeneratedText() {
  GeneratedGraph shape;
  shape.degrees_V = PowerLawDegrees(6000, 1.7, 4, 600, 1);
  TextGraph text;
  const GraphData data = GenerateGraph(shape, 1);
  text.name = "generated";
  text.graph = data.graph;
  text.labels_V = data.labels_V;
  for (int c = 0; c < data.classes; ++c) text.classes.push_back(std::to_string(c));
  for (int w = 0; w < 40; ++w) text.words.push_back(std::to_string(w));
  const CounterRng rng(1, "words");
  for (int32_t v = 0; v < data.graph.num_vertices(); ++v) {
    // One word in four tells the class.
    std::vector<int32_t>& words = text.words_V.emplace_back();
    for (int i = 0; i < 8; ++i) {
      const auto any = static_cast<int32_t>(rng.Below(v * 16 + 2 * i, 40));
      words.push_back(rng.Below(v * 16 + 2 * i + 1, 4) == 0 ? data.labels_V[v] : any);
    }
  }
  return text;
}

absl::StatusOr<std::vector<TextGraph>> Graphs() {
  if (absl::GetFlag(FLAGS_synthetic)) return std::vector<TextGraph>{GeneratedText()};
  std::vector<TextGraph> graphs(2);
  PIPELAB_ASSIGN_OR_RETURN(graphs[0], FetchTheoremGraph(DefaultDataCache()));
  PIPELAB_ASSIGN_OR_RETURN(graphs[1], FetchWordNetGraph(DefaultDataCache()));
  return graphs;
}

absl::Status Run(StudyRun* study) {
  PreparationStudySize size;
  size.epochs = absl::GetFlag(FLAGS_epochs);
  size.steps = absl::GetFlag(FLAGS_steps);
  size.repeats = absl::GetFlag(FLAGS_repeats);
  size.batch = absl::GetFlag(FLAGS_batch);
  size.hidden = absl::GetFlag(FLAGS_hidden);
  size.width = absl::GetFlag(FLAGS_width);
  size.dropout = absl::GetFlag(FLAGS_dropout);
  PIPELAB_RETURN_IF_ERROR(CheckRange("--epochs", size.epochs, 1, 1000));
  PIPELAB_RETURN_IF_ERROR(CheckRange("--repeats", size.repeats, 1, 100));
  PIPELAB_RETURN_IF_ERROR(CheckRange("--steps", size.steps, 0, 10000));
  PIPELAB_ASSIGN_OR_RETURN(const std::vector<TextGraph> graphs, Graphs());
  PIPELAB_RETURN_IF_ERROR(study->Begin());
  Report& report = study->report();
  PIPELAB_ASSIGN_OR_RETURN(const std::vector<PaperEpoch> paper, PaperEpochs());
  PIPELAB_ASSIGN_OR_RETURN(const OverlapRun overlap,
                           MeasureOverlap(ToGraphData(graphs[0], size.width), size));
  std::vector<LearnedGraph> learned;
  std::vector<Series> curves;
  for (const TextGraph& graph : graphs) {
    PIPELAB_ASSIGN_OR_RETURN(learned.emplace_back(), Learn(graph, size));
    curves.push_back({graph.name, learned.back().losses});
  }
  report.AddTable(OverlapTable(overlap));
  report.AddTable(LearnedTable(learned));
  report.AddTable(PaperTable(paper));
  report.AddLossCurves("Training loss", "loss [nats/target]", std::move(curves));
  for (Claim& c : OverlapClaims(overlap)) report.AddClaim(std::move(c));
  for (Claim& c : LearnedClaims(learned)) report.AddClaim(std::move(c));
  for (Claim& c : PaperClaims(paper)) report.AddClaim(std::move(c));
  return absl::OkStatus();
}

}  // namespace

int RunGnnPreparationStudy(int argc, char** argv) {
  RegisterStudyFlags(__FILE__);
  StudyInfo info;
  info.name = "gnn_preparation";
  info.title = "Batches of graph networks, prepared as stages";
  info.summary =
      "GraphSAGE on real graphs whose batches are sampled, gathered and moved by stages in front "
      "of "
      "the training; the same in the simulator, and SALIENT's epochs at the paper's scale.";
  info.quick = {{"epochs", "6"}, {"steps", "10"}};
  info.quick_leaves_out = "half of the epochs, and two thirds of those that are timed";
  return RunStudyMain(argc, argv, info, Run);
}

}  // namespace pipelab
