// Speed of one evaluation of an order, on one core.
//
//   bazel run //pipelines/synthesis:evaluate_benchmark
#include "benchmark/benchmark.h"
#include "glog/logging.h"
#include "pipelines/synthesis/beam.h"
#include "pipelines/synthesis/evaluate.h"
#include "pipelines/synthesis/problem.h"
#include "tools/base/units.h"

namespace pipelab {
namespace {

// Args: devices, micro-batches.
void BM_Makespan(benchmark::State& state) {
  const int devices = static_cast<int>(state.range(0));
  const int micro_batches = static_cast<int>(state.range(1));
  SynthesisProblem p = UnitProblem(devices, micro_batches, LoopedDevices(devices, 1));
  p.limits.free.assign(devices, Bytes(devices));
  BeamOptions one;
  one.width = 1;
  const OrderWords words = BeamSearch(p, ComputeHeads(p, /*memory=*/true), one);
  WordEvaluator evaluator(p);
  CHECK_LT(evaluator.Makespan(words), kNoMakespan);
  for (auto _ : state) benchmark::DoNotOptimize(evaluator.Makespan(words));
  state.SetItemsProcessed(state.iterations() * 3 * devices * micro_batches);
}
BENCHMARK(BM_Makespan)
    ->Args({4, 8})
    ->Args({16, 64})
    ->Args({32, 128})
    ->Unit(benchmark::kMicrosecond);

}  // namespace
}  // namespace pipelab
