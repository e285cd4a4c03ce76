// Cost of order-free sums beside plain float32 addition, and of 8-bit messages beside memcpy.
//
//   bazel run //kernels/messages:messages_benchmark
//
// Work and plain loop take turns on the same data; times_plain is the ratio of their times. 4096
// values lie in caches, 2^22 in memory.
#include <chrono>
#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "absl/types/span.h"
#include "benchmark/benchmark.h"
#include "kernels/messages/int8_blocks.h"
#include "kernels/messages/order_free_sum.h"
#include "kernels/simd.h"
#include "tools/base/rng.h"

namespace pipelab {
namespace {

PIPELAB_SIMD void AddPlain(const float* x, int64_t n, float* sum) {
  for (int64_t i = 0; i < n; ++i) sum[i] += x[i];
}

// What the benchmarks work on: gradients, their sum, a message.
struct Data {
  explicit Data(int64_t n) : values(n), x(n), y(n), sum(n) {
    const CounterRng rng(1, "gradient");
    for (int64_t i = 0; i < n; ++i) x[i] = 1e-3f * rng.Normal(i);
    Add();
  }
  void Add() {
    if (!sum.Add(x).ok()) sum = OrderFreeSum(values);  // it is full
  }
  int64_t values;
  std::vector<float> x, y;
  OrderFreeSum sum;
};

void AddPlain(Data& d) { AddPlain(d.x.data(), d.values, d.y.data()); }
void CopyPlain(Data& d) { std::memcpy(d.y.data(), d.x.data(), d.values * sizeof(float)); }

template <typename Work>
void InTurn(benchmark::State& state, Data& d, void (*plain)(Data&), const Work& work) {
  using Clock = std::chrono::steady_clock;
  using Seconds = std::chrono::duration<double>;
  Seconds own{0}, other{0};
  for (auto _ : state) {
    const auto begin = Clock::now();
    work();
    benchmark::ClobberMemory();
    const auto middle = Clock::now();
    plain(d);
    benchmark::ClobberMemory();
    own += middle - begin;
    other += Clock::now() - middle;
    state.SetIterationTime(Seconds(middle - begin).count());
  }
  state.SetItemsProcessed(state.iterations() * d.values);
  state.counters["times_plain"] = own / other;
}

void BM_OrderFreeAdd(benchmark::State& state) {
  Data d(state.range(0));
  InTurn(state, d, AddPlain, [&] { d.Add(); });
  state.counters["bytes_per_value"] =
      static_cast<double>(d.sum.memory_bytes()) / static_cast<double>(d.values);
}

void BM_OrderFreeMerge(benchmark::State& state) {
  Data d(state.range(0));
  const OrderFreeSum one = d.sum;
  InTurn(state, d, AddPlain, [&] {
    if (!d.sum.Merge(one).ok()) d.sum = one;
  });
}

void BM_OrderFreeRound(benchmark::State& state) {
  Data d(state.range(0));
  std::vector<float> rounded(d.values);
  InTurn(state, d, AddPlain, [&] { d.sum.Round(absl::MakeSpan(rounded)); });
}

void BM_ToInt8(benchmark::State& state) {
  Data d(state.range(0));
  InTurn(state, d, CopyPlain, [&] { benchmark::DoNotOptimize(ToInt8Message(d.x)); });
}

void BM_FromInt8(benchmark::State& state) {
  Data d(state.range(0));
  const std::string message = *ToInt8Message(d.x);
  std::vector<float> read(d.values);
  InTurn(state, d, CopyPlain,
         [&] { benchmark::DoNotOptimize(FromInt8Message(message, absl::MakeSpan(read))); });
}

BENCHMARK(BM_OrderFreeAdd)->Arg(1 << 12)->Arg(1 << 22)->UseManualTime();
BENCHMARK(BM_OrderFreeMerge)->Arg(1 << 12)->Arg(1 << 22)->UseManualTime();
BENCHMARK(BM_OrderFreeRound)->Arg(1 << 12)->Arg(1 << 22)->UseManualTime();
BENCHMARK(BM_ToInt8)->Arg(1 << 12)->Arg(1 << 22)->UseManualTime();
BENCHMARK(BM_FromInt8)->Arg(1 << 12)->Arg(1 << 22)->UseManualTime();

}  // namespace
}  // namespace pipelab
