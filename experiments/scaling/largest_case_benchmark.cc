// The largest case of GPipe's Table 1 (Transformer-1663 on 128 cores) with M = 512, on one core:
// the simulation alone, and all steps from a graph to a trace.
//
//   bazel run -c opt //experiments/scaling:largest_case_benchmark
#include <utility>

#include "benchmark/benchmark.h"
#include "experiments/scaling/gpipe_family.h"
#include "experiments/scaling/memory_fit.h"
#include "glog/logging.h"
#include "pipelines/cluster/catalog.h"
#include "pipelines/sim/simulate.h"

namespace pipelab {
namespace {

struct LargestCase {
  GroupedModel model;
  ClusterSpec cluster;
  StepCase c;

  LargestCase() {
    const auto family = FindGpipeFamily("transformer");
    CHECK(family.ok());
    model = (*family)->build(/*layers=*/1663, /*width=*/2048).value();
    cluster = LoadCluster("--cluster", (*family)->cluster).value();
    c.on.model = &model;
    c.on.cluster = &cluster;
    c.config.scheme = "gpipe";
    c.on.type = TypeOn(cluster);
    c.config.pipeline = 128;
    c.config.micro_batches = 512;
    c.config.recompute = Recompute::kFull;
    c.config.cut = CutRule::kBlocks;
  }
};

void BM_Simulate(benchmark::State& state) {
  const LargestCase largest;
  const StepPrediction point = PredictStep(largest.c.on, largest.c.config).value();
  int64_t instructions = 0;
  for (const auto& list : point.step.program.instructions) {
    instructions += static_cast<int64_t>(list.size());
  }
  for (auto _ : state) {
    const auto trace = Simulate(point.step.program, point.step.costs);
    CHECK(trace.ok()) << trace.status();
    benchmark::DoNotOptimize(trace);
  }
  state.SetItemsProcessed(state.iterations() * instructions);
}
BENCHMARK(BM_Simulate)->Unit(benchmark::kMillisecond);

void BM_GraphToTrace(benchmark::State& state) {
  const LargestCase largest;
  for (auto _ : state) {
    const auto point = PredictStep(largest.c.on, largest.c.config);
    CHECK(point.ok()) << point.status();
    benchmark::DoNotOptimize(point);
  }
}
BENCHMARK(BM_GraphToTrace)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace pipelab
