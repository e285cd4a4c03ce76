// Cost of order-free sums beside plain float32 addition, and of 8-bit messages beside memcpy.
//
//   bazel run //kernels/messages:messages_benchmark
//
// Each benchmark takes turns with the plain loop on the same data, and prints the ratio of their
// times: 4096 values lie in the first-level cache (plain) and the second, 2^22 in memory.
#include <chrono>
#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "absl/types/span.h"
#include "benchmark/benchmark.h"
#include "kernels/cpu/simd.h"
#include "kernels/messages/int8_blocks.h"
#include "kernels/messages/order_free_sum.h"
#include "tools/base/rng.h"

namespace pipelab {
namespace {

constexpr int kVectors = 8;

std::vector<float> Gradient(int64_t values, uint64_t t) {
  const CounterRng rng(1, t);
  std::vector<float> x(values);
  for (int64_t i = 0; i < values; ++i) x[i] = 1e-3f * rng.Normal(i);
  return x;
}

template <typename Work>
double Seconds(const Work& work) {
  const auto begin = std::chrono::steady_clock::now();
  work();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

// Runs both in turn; the time that counts is that of `work`.
template <typename Work, typename Plain>
void InTurn(benchmark::State& state, int64_t values, const Work& work, const Plain& plain) {
  double own = 0, other = 0;
  for (auto _ : state) {
    const double seconds = Seconds(work);
    state.SetIterationTime(seconds);
    own += seconds;
    other += Seconds(plain);
  }
  state.SetItemsProcessed(state.iterations() * values);
  state.counters["times_plain"] = own / other;
}

struct Gradients {
  explicit Gradients(int64_t values) : sum(values) {
    for (int t = 0; t < kVectors; ++t) x.push_back(Gradient(values, t));
  }
  void Add() {
    for (const std::vector<float>& v : x) {
      if (!sum.Add(v).ok()) sum = OrderFreeSum(sum.values());
    }
  }
  std::vector<std::vector<float>> x;
  OrderFreeSum sum;
};

PIPELAB_SIMD void AddPlain(const float* x, int64_t n, float* sum) {
  for (int64_t i = 0; i < n; ++i) sum[i] += x[i];
}
void AddPlain(const std::vector<float>& x, std::vector<float>* sum) {
  AddPlain(x.data(), static_cast<int64_t>(x.size()), sum->data());
  benchmark::ClobberMemory();
}

void Copy(const std::vector<float>& x, std::vector<float>* y) {
  std::memcpy(y->data(), x.data(), x.size() * sizeof(float));
  benchmark::ClobberMemory();
}

void BM_OrderFreeAdd(benchmark::State& state) {
  const int64_t values = state.range(0);
  Gradients g(values);
  g.Add();
  std::vector<float> plain(values);
  InTurn(
      state, values * kVectors, [&] { g.Add(); },
      [&] {
        for (const std::vector<float>& x : g.x) AddPlain(x, &plain);
      });
  state.counters["bytes_per_value"] =
      static_cast<double>(g.sum.memory_bytes()) / static_cast<double>(values);
}
BENCHMARK(BM_OrderFreeAdd)->Arg(1 << 12)->Arg(1 << 22)->UseManualTime();

void BM_OrderFreeMerge(benchmark::State& state) {
  const int64_t values = state.range(0);
  Gradients g(values);
  g.Add();
  OrderFreeSum all(values);
  std::vector<float> plain(values);
  InTurn(
      state, values,
      [&] {
        if (!all.Merge(g.sum).ok()) all = OrderFreeSum(values);
      },
      [&] { AddPlain(g.x[0], &plain); });
}
BENCHMARK(BM_OrderFreeMerge)->Arg(1 << 12)->Arg(1 << 22)->UseManualTime();

void BM_OrderFreeRound(benchmark::State& state) {
  const int64_t values = state.range(0);
  Gradients g(values);
  g.Add();
  std::vector<float> sum(values), plain(values);
  InTurn(
      state, values, [&] { g.sum.Round(absl::MakeSpan(sum)); }, [&] { AddPlain(g.x[0], &plain); });
}
BENCHMARK(BM_OrderFreeRound)->Arg(1 << 12)->Arg(1 << 22)->UseManualTime();

void BM_ToInt8(benchmark::State& state) {
  const std::vector<float> x = Gradient(state.range(0), 0);
  std::vector<float> copy(x.size());
  InTurn(
      state, state.range(0), [&] { benchmark::DoNotOptimize(ToInt8Message(x)); },
      [&] { Copy(x, &copy); });
}
BENCHMARK(BM_ToInt8)->Arg(1 << 12)->Arg(1 << 22)->UseManualTime();

void BM_FromInt8(benchmark::State& state) {
  const std::vector<float> x = Gradient(state.range(0), 0);
  const std::string message = *ToInt8Message(x);
  std::vector<float> y(x.size()), copy(x.size());
  InTurn(
      state, state.range(0),
      [&] { benchmark::DoNotOptimize(FromInt8Message(message, absl::MakeSpan(y))); },
      [&] { Copy(x, &copy); });
  state.counters["bytes_per_value"] =
      static_cast<double>(message.size()) / static_cast<double>(x.size());
}
BENCHMARK(BM_FromInt8)->Arg(1 << 12)->Arg(1 << 22)->UseManualTime();

}  // namespace
}  // namespace pipelab
