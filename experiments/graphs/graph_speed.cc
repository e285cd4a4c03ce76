// tools/pytorch/graph_speed.py runs it beside PyTorch Geometric and DGL.
//
//   graph_speed --graph=theorems --export=FOLDER        the graph as raw arrays
//   graph_speed --graph=theorems --measure=sample       an epoch's batches drawn by one thread
//   graph_speed --graph=theorems --measure=train        an epoch of GraphSAGE: one thread prepares
//
// The second of two epochs is measured. Prints one line of JSON: seconds, edges, the last loss.
#include <cstdint>
#include <string>
#include <vector>

#include "absl/flags/flag.h"
#include "absl/flags/parse.h"
#include "absl/status/status.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"
#include "absl/time/clock.h"
#include "models/data/graph_batch.h"
#include "models/data/graph_store.h"
#include "models/data/neighbour_sampler.h"
#include "models/data/package_cache.h"
#include "models/data/text_graph.h"
#include "models/data/theorem_graph.h"
#include "models/data/wordnet_graph.h"
#include "pipelines/graphs/graph_training.h"
#include "tools/base/file.h"
#include "tools/base/status_macros.h"

ABSL_FLAG(std::string, graph, "theorems", "theorems or wordnet");
ABSL_FLAG(std::string, export, "", "folder for the graph's arrays");
ABSL_FLAG(std::string, measure, "", "sample or train");
ABSL_FLAG(int, batch, 1024, "targets of a step");
ABSL_FLAG(int, hidden, 256, "width of the network");
ABSL_FLAG(int, width, 128, "numbers of a vertex");
ABSL_FLAG(int, threads, 1, "of the trainer, beside the one that prepares");
ABSL_FLAG(std::string, fanouts, "15,10,5", "neighbours drawn at each hop, from the targets on");

namespace pipelab {
namespace {

absl::StatusOr<GraphData> Load() {
  const std::string name = absl::GetFlag(FLAGS_graph);
  absl::StatusOr<TextGraph> text =
      absl::InvalidArgumentError(absl::StrCat("--graph=", name, ": must be theorems or wordnet"));
  if (name == "theorems") text = FetchTheoremGraph(DefaultDataCache());
  if (name == "wordnet") text = FetchWordNetGraph(DefaultDataCache());
  PIPELAB_RETURN_IF_ERROR(text.status());
  return ToGraphData(*text, absl::GetFlag(FLAGS_width));
}

absl::StatusOr<GraphBatchOptions> BatchesFromFlags() {
  GraphBatchOptions options;
  options.batch = absl::GetFlag(FLAGS_batch);
  options.fanouts.clear();
  for (absl::string_view word : absl::StrSplit(absl::GetFlag(FLAGS_fanouts), ',')) {
    int fanout = 0;
    if (!absl::SimpleAtoi(word, &fanout) || fanout < 1) {
      return absl::InvalidArgumentError(
          absl::StrCat("--fanouts=", absl::GetFlag(FLAGS_fanouts), ": '", word,
                       "' must be a number of neighbours, at least 1"));
    }
    options.fanouts.push_back(fanout);
  }
  return options;
}

template <typename T>
absl::Status Write(const std::string& name, const std::vector<T>& values) {
  const std::string bytes(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T));
  return WriteFileAtomically(JoinPath(absl::GetFlag(FLAGS_export), name), bytes);
}

absl::Status Export(const GraphData& data) {
  PIPELAB_RETURN_IF_ERROR(Write("offsets.i64", data.graph.offsets_V1));
  PIPELAB_RETURN_IF_ERROR(Write("neighbours.i32", data.graph.neighbours_E));
  PIPELAB_RETURN_IF_ERROR(Write("rows.f32", data.rows_VW));
  PIPELAB_RETURN_IF_ERROR(Write("labels.i32", data.labels_V));
  PIPELAB_RETURN_IF_ERROR(Write("train.i32", data.train));
  return WriteFileAtomically(
      JoinPath(absl::GetFlag(FLAGS_export), "sizes.json"),
      absl::StrCat("{\"width\": ", data.width, ", \"classes\": ", data.classes, "}\n"));
}

// Edges of an epoch, drawn by this thread.
int64_t DrawEpoch(const GraphBatches& batches, NeighbourSampler* sampler, int64_t first_step) {
  int64_t edges = 0;
  for (int64_t step = first_step; step < first_step + batches.steps_of_epoch(); ++step) {
    edges += sampler->Sample(step, batches.Targets(step, /*member=*/0)).num_edges();
  }
  return edges;
}

void Print(absl::Duration time, int64_t edges, const std::string& loss) {
  absl::PrintF("{\"seconds\": %.6f, \"edges\": %d, \"loss\": %s}\n", absl::ToDoubleSeconds(time),
               edges, loss);
}

absl::Status MeasureSampling(const GraphData& data, const GraphBatchOptions& options) {
  const GraphBatches batches(&data, options);
  NeighbourSampler sampler(&data.graph, options.fanouts, options.seed);
  DrawEpoch(batches, &sampler, 0);
  const absl::Time begin = absl::Now();
  const int64_t edges = DrawEpoch(batches, &sampler, batches.steps_of_epoch());
  Print(absl::Now() - begin, edges, "null");
  return absl::OkStatus();
}

absl::Status MeasureTraining(const GraphData& data, const GraphBatchOptions& options) {
  GraphTrainingOptions training_options;
  training_options.batches = options;
  training_options.threads = absl::GetFlag(FLAGS_threads);
  training_options.model.hidden = absl::GetFlag(FLAGS_hidden);
  PIPELAB_ASSIGN_OR_RETURN(const auto training, GraphTraining::Create(&data, training_options));
  PIPELAB_RETURN_IF_ERROR(training->RunEpoch().status());
  const absl::Time begin = absl::Now();
  PIPELAB_ASSIGN_OR_RETURN(const GraphEpoch epoch, training->RunEpoch());
  const absl::Duration time = absl::Now() - begin;
  NeighbourSampler sampler(&data.graph, options.fanouts, options.seed);
  const GraphBatches& batches = training->batches();
  Print(time, DrawEpoch(batches, &sampler, batches.steps_of_epoch()),
        absl::StrCat(epoch.losses.back()));
  return absl::OkStatus();
}

absl::Status Run() {
  PIPELAB_ASSIGN_OR_RETURN(const GraphBatchOptions options, BatchesFromFlags());
  PIPELAB_ASSIGN_OR_RETURN(const GraphData data, Load());
  if (!absl::GetFlag(FLAGS_export).empty()) return Export(data);
  const std::string what = absl::GetFlag(FLAGS_measure);
  if (what == "sample") return MeasureSampling(data, options);
  if (what == "train") return MeasureTraining(data, options);
  return absl::InvalidArgumentError(
      absl::StrCat("--measure=", what, ": must be sample or train, where --export is not given"));
}

}  // namespace
}  // namespace pipelab

int main(int argc, char** argv) {
  absl::ParseCommandLine(argc, argv);
  const absl::Status status = pipelab::Run();
  if (status.ok()) return 0;
  absl::FPrintF(stderr, "graph_speed: %s\n", status.message());
  return 1;
}
