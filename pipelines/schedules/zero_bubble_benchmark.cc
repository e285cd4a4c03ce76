// Speed of the zero-bubble schemes on one core: the automatic scheduler, where its first heuristic
// is optimal (equal times) and where it has to try them all (uneven times), and the orders made by
// hand at a million actions.
//
//   bazel run //pipelines/schedules:zero_bubble_benchmark
#include <string>

#include "benchmark/benchmark.h"
#include "glog/logging.h"
#include "pipelines/schedules/catalog.h"
#include "pipelines/schedules/zero_bubble.h"
#include "tools/base/rng.h"

namespace pipelab {
namespace {

// Args: devices, micro-batches, multiple of 1F1B's memory, largest difference of times in percent.
void BM_AutomaticScheduler(benchmark::State& state) {
  const int devices = static_cast<int>(state.range(0));
  const int micro_batches = static_cast<int>(state.range(1));
  const CounterRng rng(1, "zero_bubble_benchmark");
  ZeroBubbleCosts costs =
      ZeroBubbleCosts::Unit(devices, static_cast<int>(state.range(2)) * devices);
  uint64_t draw = 0;
  for (ZeroBubbleStage& stage : costs.stages) {
    for (Nanoseconds* time : {&stage.forward, &stage.backward_input, &stage.backward_weight}) {
      *time = Nanoseconds(100 + rng.Below(draw++, state.range(3) + 1));
    }
  }
  for (auto _ : state) {
    const absl::StatusOr<Schedule> schedule = MakeZeroBubble(costs, micro_batches);
    CHECK(schedule.ok()) << schedule.status();
    benchmark::DoNotOptimize(schedule->order.data());
  }
  state.SetItemsProcessed(state.iterations() * 3 * devices * micro_batches);
}
BENCHMARK(BM_AutomaticScheduler)
    ->Args({32, 256, 1, 0})
    ->Args({32, 256, 2, 0})
    ->Args({32, 256, 1, 40})
    ->Args({32, 256, 2, 40})
    ->Args({128, 1024, 1, 40})
    ->Unit(benchmark::kMillisecond);

void BM_ByHand(benchmark::State& state, const char* scheme, SchemeParams params) {
  int64_t actions = 0;
  for (auto _ : state) {
    const absl::StatusOr<Schedule> schedule = MakeSchedule(scheme, params);
    CHECK(schedule.ok()) << schedule.status();
    actions = 0;
    for (const auto& list : schedule->order) actions += static_cast<int64_t>(list.size());
  }
  state.SetItemsProcessed(state.iterations() * actions);
}
BENCHMARK_CAPTURE(BM_ByHand, zb_h1, "zb_h1", SchemeParams{128, 2731})
    ->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(BM_ByHand, zb_h2, "zb_h2", SchemeParams{128, 2731})
    ->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(BM_ByHand, interleaved_zb1p, "interleaved_zb1p", SchemeParams{128, 1024, 3})
    ->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace pipelab
