#include "models/data/graph_store.h"

#include <algorithm>
#include <cmath>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "glog/logging.h"
#include "tools/base/rng.h"

namespace pipelab {
namespace {

void ShuffleValues(const CounterRng& rng, std::vector<int32_t>* values) {
  for (size_t i = values->size(); i > 1; --i) {
    std::swap((*values)[i - 1], (*values)[rng.Below(i, i)]);
  }
}

void PairStubs(const CounterRng& rng, std::vector<int32_t> stubs,
               std::vector<std::pair<int32_t, int32_t>>* edges) {
  ShuffleValues(rng, &stubs);
  for (size_t i = 0; i + 1 < stubs.size(); i += 2) edges->push_back({stubs[i], stubs[i + 1]});
}

}  // namespace

absl::StatusOr<CsrGraph> CsrGraph::FromEdges(
    int32_t vertices, const std::vector<std::pair<int32_t, int32_t>>& edges) {
  std::vector<int64_t> starts(vertices + 1);
  for (const auto& [a, b] : edges) {
    if (std::min(a, b) < 0 || std::max(a, b) >= vertices) {
      return absl::InvalidArgumentError(
          absl::StrCat("edge ", a, " - ", b, ": vertices are 0 to ", vertices - 1));
    }
    if (a != b) ++starts[a + 1], ++starts[b + 1];
  }
  for (int32_t v = 0; v < vertices; ++v) starts[v + 1] += starts[v];
  std::vector<int32_t> all(starts[vertices]);
  std::vector<int64_t> next(starts.begin(), starts.end() - 1);
  for (const auto& [a, b] : edges) {
    if (a != b) all[next[a]++] = b, all[next[b]++] = a;
  }
  CsrGraph graph;
  graph.offsets_V1.resize(vertices + 1);
  for (int32_t v = 0; v < vertices; ++v) {
    const auto begin = all.begin() + starts[v], end = all.begin() + starts[v + 1];
    std::sort(begin, end);
    graph.neighbours_E.insert(graph.neighbours_E.end(), begin, std::unique(begin, end));
    graph.offsets_V1[v + 1] = static_cast<int64_t>(graph.neighbours_E.size());
  }
  return graph;
}

void SplitVertices(uint64_t seed, GraphData* data) {
  const CounterRng rng(seed, "held out");
  data->train.clear();
  data->test.clear();
  for (int32_t v = 0; v < data->graph.num_vertices(); ++v) {
    (rng.Below(v, 5) == 0 ? data->test : data->train).push_back(v);
  }
}

double SameLabelShare(const GraphData& data) {
  int64_t same = 0;
  for (int32_t v = 0; v < data.graph.num_vertices(); ++v) {
    for (int32_t u : data.graph.neighbours(v)) same += data.labels_V[u] == data.labels_V[v];
  }
  return static_cast<double>(same) / static_cast<double>(data.graph.neighbours_E.size());
}

GraphData GenerateGraph(const GeneratedGraph& shape, uint64_t seed) {
  const auto vertices = static_cast<int32_t>(shape.degrees_V.size());
  GraphData data;
  data.name = "generated";
  data.width = shape.width;
  data.classes = shape.classes;
  const CounterRng alike(seed, "graph/alike"), noise(seed, "graph/noise"),
      centres(seed, "graph/centres");
  std::vector<std::vector<int32_t>> own(shape.classes);
  std::vector<int32_t> others;
  int64_t stub = 0;
  for (int32_t v = 0; v < vertices; ++v) {
    const int label = v % shape.classes;
    data.labels_V.push_back(label);
    for (int32_t i = 0; i < shape.degrees_V[v]; ++i) {
      (alike.Uniform(stub++) < shape.alike ? own[label] : others).push_back(v);
    }
    for (int w = 0; w < shape.width; ++w) {
      data.rows_VW.push_back(centres.Normal(int64_t{label} * shape.width + w) +
                             shape.noise * noise.Normal(int64_t{v} * shape.width + w));
    }
  }
  std::vector<std::pair<int32_t, int32_t>> edges;
  for (int c = 0; c < shape.classes; ++c) {
    PairStubs(CounterRng(seed, absl::StrCat("graph/pairs/", c)), std::move(own[c]), &edges);
  }
  PairStubs(CounterRng(seed, "graph/pairs"), std::move(others), &edges);
  auto graph = CsrGraph::FromEdges(vertices, edges);
  CHECK(graph.ok()) << graph.status();
  data.graph = *std::move(graph);
  SplitVertices(seed, &data);
  return data;
}

std::vector<int32_t> PowerLawDegrees(int32_t vertices, double exponent, int32_t least, int32_t most,
                                     uint64_t seed) {
  CHECK(least >= 1 && most >= least);
  std::vector<double> sums;
  double sum = 0;
  for (int32_t d = least; d <= most; ++d) sums.push_back(sum += std::pow(d, -exponent));
  const CounterRng rng(seed, "graph/degrees");
  std::vector<int32_t> degrees;
  for (int32_t v = 0; v < vertices; ++v) {
    const auto it = std::upper_bound(sums.begin(), sums.end() - 1, rng.Uniform(v) * sum);
    degrees.push_back(least + static_cast<int32_t>(it - sums.begin()));
  }
  return degrees;
}

}  // namespace pipelab
