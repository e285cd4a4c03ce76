// Speed of every kernel of the CPU backend on the large shapes.
//
//   bazel run //kernels/cases:kernels_benchmark -- --benchmark_filter=Attention
//
// Columns, all by CPU time of the thread:
//   GB/s            counts each tensor once
//   GFLOP/s         counts products only
//   share_of_peak   of what this machine reaches, measured in the same run right before the case
//                   (clocks and neighbours change): dnnl_sgemm on 1024^3 for products, else a copy
//                   of as many bytes, which then come from the same level of the caches
//   of_onednn       speed as a share of oneDNN's best for the same product or convolution called
//                   alone, in the layout that it likes best and with nothing to copy; the least
//                   times of both
//   of_whole_rows   AttentionTiles: the time with all keys of a block at once (key_tile 0) as a
//                   multiple of the time with tiles, least times by turns; scratch_KiB of both
//   share_in_onednn of the case's time, inside the library; in_reorders: of it, copies of weights
#include <algorithm>
#include <chrono>
#include <cstring>
#include <functional>
#include <limits>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "benchmark/benchmark.h"
#include "kernels/cases/kernel_case.h"
#include "kernels/cpu/cpu_backend.h"
#include "kernels/cpu/library_best.h"

namespace pipelab {
namespace {

double WallSeconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

// FLOP/s of the 1024^3 product: the best of a few.
double MeasurePeakFlops() {
  constexpr int64_t kSize = 1024;
  static Arena* const arena = new Arena;
  static const std::unique_ptr<Backend> backend = MakeCpuBackend(arena);
  static const Tensor* const square =
      new Tensor(arena->Zeros(DataType::kFloat32, {kSize, kSize}, MemoryKind::kActivation));
  static const Tensor* const product = new Tensor(backend->Allocate({kSize, kSize}));
  double best = 0;
  for (int i = 0; i < 5; ++i) {
    const double start = cpu::ThreadSeconds();
    backend->Linear(*square, *square, Tensor(), *product);
    best = std::max(best, 2.0 * kSize * kSize * kSize / (cpu::ThreadSeconds() - start));
  }
  return best;
}

// Bytes per second, read and written, of a copy that touches `bytes` in all: the best of a few.
double MeasurePeakBytes(double bytes) {
  const size_t half = std::max<size_t>(64, static_cast<size_t>(bytes / 2));
  const std::vector<char> from(half, 1);
  std::vector<char> to(half, 0);
  const int copies = static_cast<int>(std::max(1.0, 4e6 / bytes));  // at least some milliseconds
  double best = 0;
  for (int i = 0; i < 7; ++i) {
    const double start = cpu::ThreadSeconds();
    for (int k = 0; k < copies; ++k) {
      std::memcpy(to.data(), from.data(), half);
      benchmark::ClobberMemory();
    }
    best =
        std::max(best, 2.0 * static_cast<double>(half) * copies / (cpu::ThreadSeconds() - start));
  }
  return best;
}

double LibraryBestSeconds(const KernelCase& c) {
  if (c.convolution) {
    return cpu::BestConvolutionSeconds(c.convolution->shape, c.convolution->pass,
                                       &cpu::ThreadSeconds);
  }
  return cpu::BestMatmulSeconds(*c.matmul, &cpu::ThreadSeconds);
}

// Speed as a share of the library's best: least times, taken by turns, so that both meet the same
// neighbours.
double ShareOfLibrary(const KernelCase& c, const std::function<void()>& run) {
  double own = std::numeric_limits<double>::infinity(), library = own;
  for (int turn = 0; turn < 3; ++turn) {
    library = std::min(library, LibraryBestSeconds(c));
    own = std::min(own, cpu::LeastSeconds(&cpu::ThreadSeconds, run));
  }
  return library / own;
}

void RunCase(benchmark::State& state, const KernelCase& c) {
  Arena arena;
  const std::unique_ptr<Backend> backend = MakeCpuBackend(&arena);
  const std::vector<Tensor> tensors = MakeTensors(c, &arena, /*seed=*/1);
  const double peak = c.flops > 0 ? MeasurePeakFlops() : MeasurePeakBytes(c.bytes);
  c.run(backend.get(), tensors);
  const int64_t library_before = backend->library_ns(), reorder_before = backend->reorder_ns();
  const double start = cpu::ThreadSeconds(), wall_start = WallSeconds();
  for (auto _ : state) {
    c.run(backend.get(), tensors);
    benchmark::ClobberMemory();
  }
  const double seconds = cpu::ThreadSeconds() - start, wall_seconds = WallSeconds() - wall_start;
  const double runs = static_cast<double>(state.iterations());
  state.counters["GB/s"] = c.bytes * runs / seconds * 1e-9;
  state.counters["share_of_peak"] = (c.flops > 0 ? c.flops : c.bytes) * runs / seconds / peak;
  if (c.flops == 0) return;
  state.counters["GFLOP/s"] = c.flops * runs / seconds * 1e-9;
  state.counters["share_in_onednn"] =
      static_cast<double>(backend->library_ns() - library_before) * 1e-9 / wall_seconds;
  state.counters["in_reorders"] =
      static_cast<double>(backend->reorder_ns() - reorder_before) * 1e-9 / wall_seconds;
  if (c.convolution || c.matmul) {
    state.counters["of_onednn"] = ShareOfLibrary(c, [&] { c.run(backend.get(), tensors); });
  }
}

// Forward and gradient of one long causal sequence, in tiles of keys.
void RunTiles(benchmark::State& state) {
  Arena arena;
  const std::unique_ptr<Backend> backend = MakeCpuBackend(&arena);
  constexpr int64_t kHeads = 2, kHeadSize = 64, kWidth = kHeads * kHeadSize;
  AttentionShape tiles{1, state.range(0), kHeads, kHeadSize, true};
  AttentionShape whole = tiles;
  tiles.key_tile = state.range(1);
  const auto zeros = [&](Shape shape) {
    return arena.Zeros(DataType::kFloat32, std::move(shape), MemoryKind::kActivation);
  };
  const Tensor qkv = zeros({tiles.tokens, 3 * kWidth}), out = zeros({tiles.tokens, kWidth});
  const Tensor lse = zeros({1, kHeads, tiles.tokens}), dqkv = zeros({tiles.tokens, 3 * kWidth});
  for (int64_t i = 0; i < qkv.size(); ++i) {
    qkv.f32()[i] = static_cast<float>(i * 7919 % 1009) / 1009.0f - 0.5f;
  }
  const auto run = [&](const AttentionShape& shape) {
    backend->attention().Forward(shape, qkv, out, lse);
    backend->attention().Gradient(shape, out, qkv, out, lse, dqkv);
  };
  const auto scratch_of = [&](const AttentionShape& shape) {
    arena.ResetPeaks();
    run(shape);
    return static_cast<double>(arena.peak(MemoryKind::kWorkspace).value()) / 1024;
  };
  state.counters["scratch_KiB"] = scratch_of(tiles);
  state.counters["scratch_KiB_whole"] = scratch_of(whole);
  double of_tiles = std::numeric_limits<double>::infinity(), of_whole = of_tiles;
  for (auto _ : state) {
    double start = cpu::ThreadSeconds();
    run(tiles);
    of_tiles = std::min(of_tiles, cpu::ThreadSeconds() - start);
    start = cpu::ThreadSeconds();
    run(whole);
    of_whole = std::min(of_whole, cpu::ThreadSeconds() - start);
  }
  state.counters["of_whole_rows"] = of_whole / of_tiles;
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
  for (const int64_t tokens : {512, 2048, 8192}) {
    for (const int64_t tile : {64, 128, 256, 512, 1024}) {
      benchmark::RegisterBenchmark("AttentionTiles", pipelab::RunTiles)
          ->Args({tokens, tile})
          ->Unit(benchmark::kMillisecond);
    }
  }
  benchmark::RunSpecifiedBenchmarks();
  return 0;
}
