// Sampled edges a second on one core: our sampler beside SALIENT's public algorithm, rebuilt, on a
// graph as skewed as the theorems' (tools/bazel run //models/data:graph_benchmark).
#include <vector>

#include "benchmark/benchmark.h"
#include "models/data/neighbour_sampler.h"
#include "models/data/package_cache.h"
#include "models/data/public_sampler_testing.h"
#include "models/data/theorem_graph.h"

namespace pipelab {
namespace {

constexpr int64_t kBatch = 1024;
const std::vector<int> kFanouts = {15, 10, 5};

// The theorems where they have been fetched, else as many vertices with as many edges.
const GraphData& Data() {
  static const GraphData* const data = [] {
    const auto dir = FindDebianPackage(MetamathPackage(), DefaultDataCache());
    const auto theorems = dir.ok() ? LoadTheoremGraph(*dir) : dir.status();
    return new GraphData(theorems.ok()
                             ? ToGraphData(*theorems, 1)
                             : GenerateGraph({PowerLawDegrees(40426, 1.6, 8, 5000, 1)}, 1));
  }();
  return *data;
}

std::vector<int32_t> Targets(int64_t step) {
  std::vector<int32_t> targets;
  const auto& train = Data().train;
  for (int64_t i = 0; i < kBatch; ++i) {
    targets.push_back(train[(step * kBatch + i) * 7919 % train.size()]);
  }
  return targets;
}

void BM_OurSampler(benchmark::State& state) {
  NeighbourSampler sampler(&Data().graph, kFanouts, 1);
  int64_t edges = 0, step = 0;
  for (auto _ : state) {
    const GraphSample sample = sampler.Sample(step, Targets(step));
    edges += sample.num_edges();
    ++step;
  }
  state.SetItemsProcessed(edges);
  state.SetLabel(Data().name);
}
BENCHMARK(BM_OurSampler);

void BM_PublicSampler(benchmark::State& state) {
  PublicGenerator generator(1);
  int64_t edges = 0, step = 0;
  for (auto _ : state) {
    edges += PublicSample(Data().graph, kFanouts, Targets(step), &generator);
    ++step;
  }
  state.SetItemsProcessed(edges);
  state.SetLabel(Data().name);
}
BENCHMARK(BM_PublicSampler);

}  // namespace
}  // namespace pipelab
