// One training step of a GPT on one device: how fast it is and how much of it is oneDNN.
// (Against PyTorch: tools/pytorch/step_speed.py.)
//
//   tools/bazel run //experiments:gpt_step_benchmark
#include <memory>

#include "benchmark/benchmark.h"
#include "glog/logging.h"
#include "models/data/text_batches.h"
#include "models/data/text_corpus.h"
#include "models/zoo/gpt.h"
#include "pipelines/runtime/training.h"

namespace pipelab {
namespace {

struct Shape {
  int layers, hidden, heads, tokens, micro_batch_size, micro_batches;
};

void BM_GptStep(benchmark::State& state, const Shape& shape) {
  auto text = MakeTextData(SyntheticCorpus(1 << 18, 1), shape.tokens, 1);
  CHECK(text.ok()) << text.status();
  GptConfig config;
  config.layers = shape.layers;
  config.hidden = shape.hidden;
  config.heads = shape.heads;
  config.tokens = shape.tokens;
  config.vocabulary = text->train->vocabulary();
  auto graph = BuildGpt(config);
  CHECK(graph.ok()) << graph.status();
  TrainingOptions options;
  options.config.pipeline = 1;
  options.config.micro_batches = shape.micro_batches;
  options.config.micro_batch_size = shape.micro_batch_size;
  auto training = PipelineTraining::Create(*graph, *text->train, options);
  CHECK(training.ok()) << training.status();
  CHECK((*training)->Step().ok());  // warms up
  double compute = 0, library = 0, step_time = 0;
  for (auto _ : state) {
    auto step = (*training)->Step();
    CHECK(step.ok()) << step.status();
    state.PauseTiming();
    for (const ExecutedInstruction& span :
         SpansOf((*training)->program(), step->trace, /*device=*/0)) {
      library += static_cast<double>(span.library_ns);
      if (span.op == OpCode::kCompute) compute += static_cast<double>(span.end_ns - span.begin_ns);
    }
    step_time += static_cast<double>(step->trace.makespan.value());
    state.ResumeTiming();
  }
  const double tokens = 1.0 * shape.micro_batches * shape.micro_batch_size * shape.tokens;
  Flops flops;
  for (const LayerSpec& layer : graph->layers) {
    const LayerCosts c = layer.costs(int64_t{shape.micro_batches} * shape.micro_batch_size);
    flops += c.forward + c.backward_input + c.backward_weight;
  }
  state.counters["library_share"] = library / step_time;  // of the whole step, optimizer included
  state.counters["compute_share"] = compute / step_time;
  state.counters["gflops"] = flops.value() * static_cast<double>(state.iterations()) / step_time;
  state.counters["tokens_per_s"] =
      benchmark::Counter(tokens, benchmark::Counter::kIsIterationInvariantRate);
  state.counters["layers"] = shape.layers;
  state.counters["hidden"] = shape.hidden;
  state.counters["heads"] = shape.heads;
  state.counters["tokens"] = shape.tokens;
  state.counters["vocabulary"] = static_cast<double>(config.vocabulary);
  state.counters["samples"] = shape.micro_batch_size;
  state.counters["micro_batches"] = shape.micro_batches;
  state.counters["parameters"] = static_cast<double>(graph->num_parameters());
}

// The quickstart's network, and two wider or longer ones.
BENCHMARK_CAPTURE(BM_GptStep, quickstart, Shape{8, 128, 4, 128, 1, 8})
    ->Unit(benchmark::kMillisecond)
    ->UseRealTime();
BENCHMARK_CAPTURE(BM_GptStep, hidden256, Shape{4, 256, 4, 128, 4, 4})
    ->Unit(benchmark::kMillisecond)
    ->UseRealTime();
BENCHMARK_CAPTURE(BM_GptStep, hidden512, Shape{4, 512, 8, 256, 2, 2})
    ->Unit(benchmark::kMillisecond)
    ->UseRealTime();

}  // namespace
}  // namespace pipelab

BENCHMARK_MAIN();
