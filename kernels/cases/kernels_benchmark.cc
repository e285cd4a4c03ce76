// Speed of every kernel of the CPU backend on the large shapes.
//
//   bazel run //kernels/cases:kernels_benchmark -- --benchmark_filter=Attention
//
// Columns: GB/s counts each tensor once, by CPU time. GFLOP/s counts products only. share_of_peak
// divides it by what dnnl_sgemm reaches on 1024^3 in the same run, measured right before the case:
// clocks and neighbours change.
#include <time.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "benchmark/benchmark.h"
#include "kernels/cases/kernel_case.h"
#include "kernels/cpu/cpu_backend.h"

namespace pipelab {
namespace {

// Of this thread: a neighbour on the machine then costs only what it takes from caches and memory.
double CpuSeconds() {
  timespec now;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9;
}

double WallSeconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

// FLOP/s of the 1024^3 product: the best of a few.
double MeasurePeak() {
  constexpr int64_t kSize = 1024;
  static Arena* const arena = new Arena;
  static const std::unique_ptr<Backend> backend = MakeCpuBackend(arena);
  static const Tensor* const square =
      new Tensor(arena->Zeros(DataType::kFloat32, {kSize, kSize}, MemoryKind::kActivation));
  static const Tensor* const product = new Tensor(backend->Allocate({kSize, kSize}));
  double best = 0;
  for (int i = 0; i < 5; ++i) {
    const double start = CpuSeconds();
    backend->Linear(*square, *square, Tensor(), *product);
    best = std::max(best, 2.0 * kSize * kSize * kSize / (CpuSeconds() - start));
  }
  return best;
}

void RunCase(benchmark::State& state, const KernelCase& c) {
  Arena arena;
  const std::unique_ptr<Backend> backend = MakeCpuBackend(&arena);
  const std::vector<Tensor> tensors = MakeTensors(c, &arena, /*seed=*/1);
  const double peak = c.flops > 0 ? MeasurePeak() : 0;
  c.run(backend.get(), tensors);
  const int64_t library_before = backend->library_ns();
  const double start = CpuSeconds(), wall_start = WallSeconds();
  for (auto _ : state) {
    c.run(backend.get(), tensors);
    benchmark::ClobberMemory();
  }
  const double seconds = CpuSeconds() - start, wall_seconds = WallSeconds() - wall_start;
  const double runs = static_cast<double>(state.iterations());
  state.counters["GB/s"] = c.bytes * runs / seconds * 1e-9;
  if (c.flops > 0) {
    state.counters["GFLOP/s"] = c.flops * runs / seconds * 1e-9;
    state.counters["share_of_peak"] = c.flops * runs / seconds / peak;
    state.counters["share_in_onednn"] =
        static_cast<double>(backend->library_ns() - library_before) * 1e-9 / wall_seconds;
  }
}

}  // namespace
}  // namespace pipelab

int main(int argc, char** argv) {
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 2;
  const std::vector<pipelab::KernelCase> cases = pipelab::KernelCases(pipelab::CaseSize::kLarge);
  for (const pipelab::KernelCase& c : cases) {
    benchmark::RegisterBenchmark(c.name.c_str(), pipelab::RunCase, c)
        ->Unit(benchmark::kMicrosecond);
  }
  benchmark::RunSpecifiedBenchmarks();
  return 0;
}
