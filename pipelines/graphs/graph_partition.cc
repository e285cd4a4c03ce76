#include "pipelines/graphs/graph_partition.h"

#include <metis.h>

#include <algorithm>
#include <array>
#include <limits>
#include <numeric>
#include <utility>

#include "absl/base/attributes.h"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "models/data/example_order.h"
#include "models/data/neighbour_sampler.h"
#include "tools/base/name_table.h"
#include "tools/base/rng.h"
#include "tools/base/status_macros.h"

namespace pipelab {
namespace {

constexpr int kMostParts = 256;
constexpr int64_t kMostEdgeWeight = 1 << 20, kMostSum = int64_t{1} << 30;

// METIS draws from the C library's one generator, which it seeds: one call at a time.
ABSL_CONST_INIT absl::Mutex metis_mutex(absl::kConstInit);

// A graph as METIS reads it: each edge in both lists, with the weights of both directions.
struct MetisGraph {
  std::vector<idx_t> begins, ends, edges, vertices;
};

// Directed edges with their weights, without those of weight 0, by one of their ends.
struct WeightedLists {
  std::vector<int64_t> begins_V1;
  std::vector<std::pair<int32_t, int64_t>> ends;
};

WeightedLists BothWays(const CsrGraph& graph, const std::vector<int64_t>& weights_E) {
  const int32_t n = graph.num_vertices();
  const auto weight = [&](int64_t e) {
    return weights_E.empty() ? 1 : std::min(weights_E[e], kMostEdgeWeight);
  };
  const auto for_each = [&](auto&& fn) {
    for (int32_t v = 0; v < n; ++v) {
      for (int64_t e = graph.offsets_V1[v]; e < graph.offsets_V1[v + 1]; ++e) {
        if (weight(e) > 0) fn(v, graph.neighbours_E[e], weight(e));
      }
    }
  };
  WeightedLists lists;
  lists.begins_V1.resize(n + 1);
  for_each([&](int32_t v, int32_t u, int64_t) {
    ++lists.begins_V1[v + 1];
    ++lists.begins_V1[u + 1];
  });
  for (int32_t v = 0; v < n; ++v) lists.begins_V1[v + 1] += lists.begins_V1[v];
  lists.ends.resize(lists.begins_V1[n]);
  std::vector<int64_t> next(lists.begins_V1.begin(), lists.begins_V1.end() - 1);
  for_each([&](int32_t v, int32_t u, int64_t w) {
    lists.ends[next[v]++] = {u, w};
    lists.ends[next[u]++] = {v, w};
  });
  return lists;
}

MetisGraph ForMetis(const CsrGraph& graph, const GraphWeights& weights) {
  MetisGraph m;
  const int32_t n = graph.num_vertices();
  WeightedLists lists = BothWays(graph, weights.edges_E);
  m.begins.push_back(0);
  for (int32_t v = 0; v < n; ++v) {
    const auto begin = lists.ends.begin() + lists.begins_V1[v];
    const auto end = lists.ends.begin() + lists.begins_V1[v + 1];
    std::sort(begin, end);
    for (auto it = begin; it != end; ++it) {
      if (it == begin || it->first != (it - 1)->first) {
        m.ends.push_back(it->first);
        m.edges.push_back(0);
      }
      m.edges.back() += static_cast<idx_t>(it->second);
    }
    m.begins.push_back(static_cast<idx_t>(m.ends.size()));
  }
  const std::vector<int64_t>& of = weights.vertices_V;
  const int64_t sum = std::accumulate(of.begin(), of.end(), int64_t{0});
  const int64_t divisor = 1 + sum / kMostSum;
  for (int64_t w : of) m.vertices.push_back(static_cast<idx_t>((w + divisor - 1) / divisor));
  if (of.empty()) m.vertices.assign(n, 1);
  return m;
}

absl::Status CheckPartition(const CsrGraph& graph, const GraphWeights& weights, int parts) {
  if (parts < 1 || parts > kMostParts) {
    return absl::InvalidArgumentError(absl::StrCat("parts=", parts, ": must be 1 to ", kMostParts));
  }
  // Both directions of each, and of directed ones.
  if (2 * graph.neighbours_E.size() > static_cast<size_t>(std::numeric_limits<idx_t>::max())) {
    return absl::InvalidArgumentError(absl::StrCat("a graph of ", graph.neighbours_E.size(),
                                                   " directed edges: METIS takes at most 2^30"));
  }
  const auto fits = [](size_t have, size_t want) { return have == 0 || have == want; };
  if (fits(weights.vertices_V.size(), graph.num_vertices()) &&
      fits(weights.edges_E.size(), graph.neighbours_E.size())) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError("weights of a graph: must be one for each vertex and edge");
}

absl::Status MetisError(int code) {
  return code == METIS_ERROR_MEMORY
             ? absl::ResourceExhaustedError("METIS: has not enough memory for the graph")
             : absl::InternalError(absl::StrCat("METIS: gives up with code ", code));
}

std::vector<int32_t> BatchOf(const PreSampling& sampling, const ExampleOrder& order, int64_t step) {
  const auto size = static_cast<int64_t>(sampling.train.size());
  const int64_t steps = (size + sampling.batch - 1) / sampling.batch;
  const int64_t first = step % steps * sampling.batch;
  std::vector<int32_t> batch;
  for (int64_t i = first; i < std::min(first + sampling.batch, size); ++i) {
    batch.push_back(sampling.train[order.ExampleAt(step / steps, i)]);
  }
  return batch;
}

void Count(const CsrGraph& graph, const GraphSample& sample, PreSamples* counts) {
  for (const GraphBlock& block : sample.blocks) {
    for (int32_t i = 0; i < block.num_targets; ++i) {
      const int32_t v = block.sources[i];
      ++counts->draws_V[v];
      const absl::Span<const int32_t> all = graph.neighbours(v);
      for (int32_t e = block.offsets[i]; e < block.offsets[i + 1]; ++e) {
        const auto at = std::lower_bound(all.begin(), all.end(), block.sources[block.edges[e]]);
        ++counts->edges_E[graph.offsets_V1[v] + (at - all.begin())];
      }
    }
  }
  for (int32_t v : sample.blocks[0].sources) ++counts->inputs_V[v];
}

constexpr std::array<std::pair<PartitionMethod, const char*>, 4> kMethods = {
    {{PartitionMethod::kRandom, "random"},
     {PartitionMethod::kVertices, "vertices"},
     {PartitionMethod::kEdges, "edges"},
     {PartitionMethod::kPreSamples, "pre_samples"}}};

}  // namespace

absl::StatusOr<VertexOwners> PartitionGraph(const CsrGraph& graph, const GraphWeights& weights,
                                            int parts, uint64_t seed) {
  PIPELAB_RETURN_IF_ERROR(CheckPartition(graph, weights, parts));
  VertexOwners owners(graph.num_vertices());
  if (parts == 1 || owners.empty()) return owners;
  MetisGraph m = ForMetis(graph, weights);
  idx_t options[METIS_NOPTIONS], vertices = graph.num_vertices(), constraints = 1, cut = 0;
  idx_t count = parts;
  METIS_SetDefaultOptions(options);
  options[METIS_OPTION_SEED] = static_cast<idx_t>(seed & 0x7fffffff);
  std::vector<idx_t> part(vertices);
  const absl::MutexLock lock(&metis_mutex);
  const int code = METIS_PartGraphKway(&vertices, &constraints, m.begins.data(), m.ends.data(),
                                       m.vertices.data(), nullptr, m.edges.data(), &count, nullptr,
                                       nullptr, options, &cut, part.data());
  if (code != METIS_OK) return MetisError(code);
  std::copy(part.begin(), part.end(), owners.begin());
  return owners;
}

absl::StatusOr<PreSamples> SampleBefore(const CsrGraph& graph, const PreSampling& sampling) {
  if (sampling.train.empty() || sampling.fanouts.empty() || sampling.batch < 1 ||
      sampling.epochs < 1) {
    return absl::InvalidArgumentError(
        "pre-sampling: needs targets, fan-outs, a batch and epochs of at least 1");
  }
  PreSamples counts;
  counts.draws_V.resize(graph.num_vertices());
  counts.inputs_V.resize(graph.num_vertices());
  counts.edges_E.resize(graph.neighbours_E.size());
  // Not the samples of a training with the same seed.
  NeighbourSampler sampler(&graph, sampling.fanouts, sampling.seed ^ StableHash("pre-samples"));
  const auto size = static_cast<int64_t>(sampling.train.size());
  const ExampleOrder order(size, size, sampling.seed, "pre-samples");
  const int64_t steps = (size + sampling.batch - 1) / sampling.batch * sampling.epochs;
  for (int64_t step = 0; step < steps; ++step) {
    Count(graph, sampler.Sample(step, BatchOf(sampling, order, step)), &counts);
  }
  return counts;
}

GraphWeights WeightsOf(const CsrGraph& graph, const PreSamples& samples) {
  GraphWeights weights;
  weights.edges_E = samples.edges_E;
  const int64_t mean = std::max<int64_t>(
      static_cast<int64_t>(graph.neighbours_E.size()) / std::max(graph.num_vertices(), 1), 1);
  for (int64_t draws : samples.draws_V) weights.vertices_V.push_back(draws * mean + 1);
  return weights;
}

const char* PartitionMethodName(PartitionMethod method) { return NameInTable(kMethods, method); }

absl::StatusOr<PartitionMethod> FindPartitionMethod(absl::string_view name) {
  return FindInTable(kMethods, name);
}

absl::StatusOr<VertexOwners> MakePartition(PartitionMethod method, const CsrGraph& graph,
                                           const PreSamples& samples, int parts, uint64_t seed) {
  GraphWeights weights;
  switch (method) {
    case PartitionMethod::kRandom: {
      PIPELAB_RETURN_IF_ERROR(CheckPartition(graph, weights, parts));
      const CounterRng rng(seed, "partition");
      VertexOwners owners(graph.num_vertices());
      for (size_t v = 0; v < owners.size(); ++v) {
        owners[v] = static_cast<uint8_t>(rng.Below(v, parts));
      }
      return owners;
    }
    case PartitionMethod::kVertices:
      break;
    case PartitionMethod::kEdges:
      for (int32_t v = 0; v < graph.num_vertices(); ++v) {
        weights.vertices_V.push_back(graph.degree(v));
      }
      break;
    case PartitionMethod::kPreSamples:
      if (samples.edges_E.size() != graph.neighbours_E.size()) {
        return absl::InvalidArgumentError("partition by pre-samples: needs those of the graph");
      }
      weights = WeightsOf(graph, samples);
  }
  return PartitionGraph(graph, weights, parts, seed);
}

PartitionQuality QualityOf(const CsrGraph& graph, const VertexOwners& owners, int parts) {
  PartitionQuality quality;
  quality.vertices_P.resize(parts);
  quality.edge_ends_P.resize(parts);
  int64_t cut = 0;
  for (int32_t v = 0; v < graph.num_vertices(); ++v) {
    ++quality.vertices_P[owners[v]];
    quality.edge_ends_P[owners[v]] += graph.degree(v);
    for (int32_t u : graph.neighbours(v)) cut += owners[u] != owners[v];
  }
  const auto over_mean = [parts](const std::vector<int64_t>& of) {
    const auto sum = static_cast<double>(std::accumulate(of.begin(), of.end(), int64_t{0}));
    const auto most = static_cast<double>(*std::max_element(of.begin(), of.end()));
    return sum > 0 ? most * parts / sum : 1;
  };
  quality.vertices = over_mean(quality.vertices_P);
  quality.edges = over_mean(quality.edge_ends_P);
  const size_t ends = graph.neighbours_E.size();
  quality.cut = ends > 0 ? static_cast<double>(cut) / static_cast<double>(ends) : 0;
  return quality;
}

}  // namespace pipelab
