#include "experiments/plan_commands/graph_parts.h"

#include <cstdint>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "absl/flags/declare.h"
#include "absl/flags/flag.h"
#include "absl/status/statusor.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"
#include "experiments/flags/output.h"
#include "experiments/simulate/user_file.h"
#include "models/data/edge_list.h"
#include "models/data/graph_store.h"
#include "models/data/package_cache.h"
#include "models/data/text_graph.h"
#include "models/data/theorem_graph.h"
#include "models/data/wordnet_graph.h"
#include "pipelines/graphs/graph_partition.h"
#include "tools/base/file_fault.h"
#include "tools/base/status_macros.h"
#include "tools/base/text_columns.h"

ABSL_DECLARE_FLAG(int, devices);    // schedule_input.cc
ABSL_DECLARE_FLAG(uint64_t, seed);  // time_limit.cc
ABSL_FLAG(std::string, graph, "",
          "divide the vertices of this graph over the devices: theorems, wordnet, or a file with "
          "two numbers of vertices a line; - is stdin");
ABSL_FLAG(std::string, partition, "vertices",
          "of --graph: random, or by METIS so that devices have equal vertices, edges, or "
          "pre_samples (what batches of --fanouts draw)");
ABSL_FLAG(std::string, fanouts, "15,10,5", "neighbours drawn a hop, for --partition=pre_samples");
ABSL_FLAG(std::string, parts_out, "",
          "file for the device of each vertex of --graph, a line each; - is stdout");

namespace pipelab {
namespace {

struct NamedGraph {
  CsrGraph graph;
  std::vector<int32_t> train;
};

absl::StatusOr<NamedGraph> ReadGraph(const std::string& name) {
  if (name == "theorems" || name == "wordnet") {
    const std::string cache = DefaultDataCache();
    PIPELAB_ASSIGN_OR_RETURN(const TextGraph text, name == "theorems" ? FetchTheoremGraph(cache)
                                                                      : FetchWordNetGraph(cache));
    GraphData data = ToGraphData(text, /*width=*/1);
    return NamedGraph{std::move(data.graph), std::move(data.train)};
  }
  PIPELAB_ASSIGN_OR_RETURN(const std::string text, ReadUserFile("--graph", name));
  NamedGraph named;
  PIPELAB_ASSIGN_OR_RETURN(named.graph,
                           FaultOfFile(ParseEdgeList(text, absl::StrCat("--graph=", name))));
  // Where nobody says what is learned from: a tenth of the vertices, as GSplit takes.
  for (int32_t v = 0; v < named.graph.num_vertices(); v += 10) named.train.push_back(v);
  return named;
}

absl::StatusOr<std::vector<int>> Fanouts() {
  const std::string text = absl::GetFlag(FLAGS_fanouts);
  std::vector<int> fanouts;
  for (absl::string_view word : absl::StrSplit(text, ',')) {
    int fanout = 0;
    if (!absl::SimpleAtoi(word, &fanout) || fanout < 1 || fanouts.size() == 8) {
      return absl::InvalidArgumentError(
          absl::StrCat("--fanouts=", text, ": must be 1 to 8 numbers from 1, such as 15,10,5"));
    }
    fanouts.push_back(fanout);
  }
  return fanouts;
}

std::string PartsText(const CsrGraph& graph, const PartitionQuality& quality, int parts,
                      PartitionMethod method) {
  std::vector<std::vector<std::string>> lines = {{"device", "vertices", "edge ends"}};
  for (int p = 0; p < parts; ++p) {
    lines.push_back({absl::StrCat(p), absl::StrCat(quality.vertices_P[p]),
                     absl::StrCat(quality.edge_ends_P[p])});
  }
  return absl::StrFormat(
      "%d vertices, %d edges over %d devices (%s): %.2f %% of the edges between devices; the "
      "fullest has %.3f times the mean's vertices, %.3f times its edges\n\n%s",
      graph.num_vertices(), graph.num_edges(), parts, PartitionMethodName(method),
      100 * quality.cut, quality.vertices, quality.edges,
      AlignColumns(lines, 2, {true, true, true}));
}

}  // namespace

absl::Status PlanGraphParts() {
  const int parts = absl::GetFlag(FLAGS_devices);
  const std::string out = absl::GetFlag(FLAGS_parts_out);
  if (parts < 1 || parts > 256) {
    return absl::InvalidArgumentError(
        absl::StrCat("--devices=", parts, ": must be 1 to 256 for --graph"));
  }
  const auto method = FindPartitionMethod(absl::GetFlag(FLAGS_partition));
  if (!method.ok()) {
    return absl::InvalidArgumentError(absl::StrCat("--partition=", method.status().message()));
  }
  PreSampling sampling;
  PIPELAB_ASSIGN_OR_RETURN(sampling.fanouts, Fanouts());
  PIPELAB_ASSIGN_OR_RETURN(NamedGraph named, ReadGraph(absl::GetFlag(FLAGS_graph)));
  sampling.train = std::move(named.train);
  sampling.seed = absl::GetFlag(FLAGS_seed);
  PreSamples samples;
  if (*method == PartitionMethod::kPreSamples) {
    PIPELAB_ASSIGN_OR_RETURN(samples, SampleBefore(named.graph, sampling));
  }
  PIPELAB_ASSIGN_OR_RETURN(const VertexOwners owners,
                           MakePartition(*method, named.graph, samples, parts, sampling.seed));
  if (!out.empty()) {
    std::string text;
    for (uint8_t owner : owners) absl::StrAppend(&text, owner, "\n");
    PIPELAB_RETURN_IF_ERROR(WriteOutput("--parts_out", out, text));
    if (out == "-") return absl::OkStatus();
  }
  return WriteOutput("stdout", "-",
                     PartsText(named.graph, QualityOf(named.graph, owners, parts), parts, *method));
}

}  // namespace pipelab
