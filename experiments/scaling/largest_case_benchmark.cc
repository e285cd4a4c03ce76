// The largest case of GPipe's Table 1 (Transformer-1663 on 128 cores) with M = 512, on one core:
// the simulation alone, and all steps from a graph to a trace.
//
//   bazel run -c opt //experiments/scaling:largest_case_benchmark
#include <utility>

#include "benchmark/benchmark.h"
#include "experiments/scaling/gpipe_family.h"
#include "experiments/scaling/pipeline_point.h"
#include "glog/logging.h"
#include "pipelines/cluster/catalog.h"
#include "pipelines/sim/simulate.h"

namespace pipelab {
namespace {

struct LargestCase {
  GroupedModel model;
  ClusterSpec cluster;
  PipelineCase c;

  LargestCase() {
    const auto family = FindGpipeFamily("transformer");
    CHECK(family.ok());
    model = (*family)->build(/*layers=*/1663, /*width=*/2048).value();
    cluster = LoadCluster("--cluster", (*family)->cluster).value();
    c.model = &model;
    c.cluster = &cluster;
    c.type = TypeOn(cluster);
    c.sizes.devices = 128;
    c.sizes.micro_batches = 512;
    c.sizes.recompute = true;
    c.rule = PartitionRule::kTime;
  }
};

void BM_Simulate(benchmark::State& state) {
  const LargestCase largest;
  const PipelinePoint point = EvaluatePipeline(largest.c).value();
  int64_t instructions = 0;
  for (const auto& list : point.program.instructions) {
    instructions += static_cast<int64_t>(list.size());
  }
  for (auto _ : state) {
    const auto trace = Simulate(point.program, point.costs);
    CHECK(trace.ok()) << trace.status();
    benchmark::DoNotOptimize(trace);
  }
  state.SetItemsProcessed(state.iterations() * instructions);
}
BENCHMARK(BM_Simulate)->Unit(benchmark::kMillisecond);

void BM_GraphToTrace(benchmark::State& state) {
  const LargestCase largest;
  for (auto _ : state) {
    const auto point = EvaluatePipeline(largest.c);
    CHECK(point.ok()) << point.status();
    benchmark::DoNotOptimize(point);
  }
}
BENCHMARK(BM_GraphToTrace)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace pipelab
