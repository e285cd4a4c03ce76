// Exact nearest neighbours of 100,000 x 100,000 vectors of 256 numbers, k = 4, both ways:
//
//   bazel run //models/mining:nearest_benchmark
//
// Seconds of the wall clock and of both threads together (CPU), GFLOP/s of the product, and the
// most memory that the process had.
#include <sys/resource.h>

#include "benchmark/benchmark.h"
#include "kernels/tensor/arena.h"
#include "models/mining/nearest.h"
#include "tools/base/rng.h"

namespace pipelab {
namespace {

void Fill(uint64_t seed, const Tensor& t) {
  const CounterRng rng(seed, "vectors");
  for (int64_t i = 0; i < t.size(); ++i) t.f32()[i] = rng.Uniform(i) - 0.5f;
}

void Nearest(benchmark::State& state) {
  const int64_t rows = state.range(0), dims = state.range(1);
  Arena arena;
  const Tensor x = arena.Allocate(DataType::kFloat32, {rows, dims}, MemoryKind::kActivation);
  const Tensor y = arena.Allocate(DataType::kFloat32, {rows, dims}, MemoryKind::kActivation);
  Fill(1, x);
  Fill(2, y);
  for (auto _ : state) {
    const Neighbours near = NearestNeighbours(x, y, 4, static_cast<int>(state.range(2)));
    benchmark::DoNotOptimize(near.of_x.Of(0).data());
  }
  const double flops = 2.0 * static_cast<double>(rows) * static_cast<double>(rows * dims);
  state.counters["GFLOP/s"] = benchmark::Counter(
      flops * 1e-9 * static_cast<double>(state.iterations()), benchmark::Counter::kIsRate);
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  state.counters["peak_MB"] = static_cast<double>(usage.ru_maxrss) * 1024 / 1e6;
}
BENCHMARK(Nearest)
    ->ArgNames({"rows", "dims", "threads"})
    ->Args({10000, 256, 2})
    ->Args({100000, 256, 2})
    ->Unit(benchmark::kSecond)
    ->MeasureProcessCPUTime()
    ->UseRealTime()
    ->Iterations(1);

}  // namespace
}  // namespace pipelab

BENCHMARK_MAIN();
