// How well a replay says what a run takes: two devices on two cores, measured step time beside the
// step time replayed from the same run's action times. On enough cores the ratio should be within
// 10% of 1.
//
//   tools/bazel run //experiments:replay_benchmark
#include <algorithm>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "benchmark/benchmark.h"
#include "glog/logging.h"
#include "models/data/text_batches.h"
#include "models/data/text_corpus.h"
#include "models/zoo/gpt.h"
#include "pipelines/runtime/training.h"
#include "pipelines/sim/replay.h"

namespace pipelab {
namespace {

constexpr int kDevices = 2;

void BM_ReplayedOverMeasured(benchmark::State& state, const std::string& scheme) {
  if (std::thread::hardware_concurrency() < kDevices) {
    state.SkipWithError("needs 2 cores, one core per device");
    return;
  }
  auto text = MakeTextData(SyntheticCorpus(1 << 18, 1), /*context=*/128, 1);
  CHECK(text.ok()) << text.status();
  GptConfig config;
  config.layers = 4;
  config.hidden = 192;
  config.heads = 6;
  config.tokens = 128;
  config.vocabulary = text->train->vocabulary();
  auto graph = BuildGpt(config);
  CHECK(graph.ok()) << graph.status();
  TrainingOptions options;
  options.config.scheme = scheme;
  options.config.pipeline = kDevices;
  options.config.micro_batches = 8;
  options.config.recompute = scheme == "gpipe" ? Recompute::kFull : Recompute::kNone;
  auto training = PipelineTraining::Create(*graph, *text->train, options);
  CHECK(training.ok()) << training.status();
  for (int i = 0; i < 3; ++i) CHECK((*training)->Step().ok());  // warms up
  std::vector<Trace> traces;
  std::vector<double> measured;
  for (auto _ : state) {
    auto step = (*training)->Step();
    CHECK(step.ok()) << step.status();
    measured.push_back(ToMilliseconds(step->trace.makespan));
    traces.push_back(std::move(step->trace));
  }
  auto replayed = Replay((*training)->program(), traces, (*training)->costs());
  CHECK(replayed.ok()) << replayed.status();
  std::nth_element(measured.begin(), measured.begin() + measured.size() / 2, measured.end());
  const double median = measured[measured.size() / 2];
  state.counters["measured_ms"] = median;
  state.counters["replayed_ms"] = ToMilliseconds(replayed->makespan);
  state.counters["replayed_over_measured"] = ToMilliseconds(replayed->makespan) / median;
}

BENCHMARK_CAPTURE(BM_ReplayedOverMeasured, gpipe, "gpipe")->Iterations(40)->UseRealTime();
BENCHMARK_CAPTURE(BM_ReplayedOverMeasured, 1f1b, "1f1b")->Iterations(40)->UseRealTime();
BENCHMARK_CAPTURE(BM_ReplayedOverMeasured, interleaved, "interleaved")
    ->Iterations(40)
    ->UseRealTime();
BENCHMARK_CAPTURE(BM_ReplayedOverMeasured, breadth_first, "breadth_first")
    ->Iterations(40)
    ->UseRealTime();
BENCHMARK_CAPTURE(BM_ReplayedOverMeasured, chimera, "chimera")->Iterations(40)->UseRealTime();

}  // namespace
}  // namespace pipelab

BENCHMARK_MAIN();
