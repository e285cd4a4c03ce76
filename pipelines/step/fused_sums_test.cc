// Transformer Engine's buffers of gradients in the memory of a step (megatron_graph.h).
#include <cstdint>
#include <string>

#include "gtest/gtest.h"
#include "models/graph/cost_math.h"
#include "models/zoo/gpt.h"
#include "pipelines/cluster/catalog.h"
#include "pipelines/step/megatron_graph.h"
#include "pipelines/step/model_on_cluster.h"
#include "pipelines/step/step.h"
#include "tools/base/status_matchers.h"

namespace pipelab {
namespace {

// Numbers in the buffers of a block: of queries, keys and values, of their projection and of a
// gated feed-forward.
constexpr int64_t kBufferedTokens = 64, kBufferedWidth = 128, kBufferedInner = 384;
constexpr int64_t kBufferNumbers =
    4 * kBufferedWidth * kBufferedWidth + 3 * kBufferedWidth * kBufferedInner;

// How much more the fullest device holds with buffers than without.
int64_t More(const StepConfig& config) {
  const GptConfig gpt =
      LlamaConfig(/*layers=*/8, kBufferedWidth, /*heads=*/4, kBufferedInner, kBufferedTokens, 512);
  int64_t bytes[2] = {};
  for (const bool buffers : {false, true}) {
    const auto with = buffers ? MegatronCoreGraph : MegatronGraph;
    const auto on = ModelOnCluster::Of(with(*BuildGpt(gpt), AttentionImplementation::kFused,
                                            NumberType::kBf16, LossImplementation::kFused),
                                       *LoadCluster("--cluster", "dgx-h100"), NumberType::kBf16);
    const auto step = PredictStep(on->step(), config);
    EXPECT_THAT(step, IsOk());
    bytes[buffers] = step->largest_device.value();
  }
  return bytes[1] - bytes[0];
}

StepConfig BufferedConfig(const std::string& scheme, int64_t tensor, int virtual_stages) {
  StepConfig c;
  c.scheme = scheme;
  c.pipeline = 2;
  c.virtual_stages = virtual_stages;
  c.tensor = tensor;
  c.data = 4 / tensor;
  c.micro_batches = 4;
  c.state = {/*weights=*/2, /*gradients=*/4};
  return c;
}

// Stages of one device share them, and so do the copies of bidirectional schedules.
TEST(GradientBuffersOfAStep, AreSharedByStages) {
  for (const int64_t t : {1, 2, 4}) {
    EXPECT_EQ(More(BufferedConfig("1f1b", t, 1)), 2 * kBufferNumbers / t);
    EXPECT_EQ(More(BufferedConfig("interleaved", t, 4)), 2 * kBufferNumbers / t);
    EXPECT_EQ(More(BufferedConfig("chimera", t, 1)), 2 * kBufferNumbers / t);
  }
}

// Sharding the state divides nothing of them. With FSDP's casts nothing adds to sums, and there are
// none.
TEST(GradientBuffersOfAStep, FollowTheState) {
  StepConfig c = BufferedConfig("1f1b", 1, 1);
  for (const Sharding sharding : {Sharding::kOptimizer, Sharding::kGradients}) {
    c.sharding = sharding;
    EXPECT_EQ(More(c), 2 * kBufferNumbers);
  }
  c.sharding = Sharding::kFully;
  c.state.cast = true;
  EXPECT_EQ(More(c), 0);
}

// A loss in place keeps the logits' gradient alone, and the head's own gradient in half precision
// is beside it and the input's when its product is over.
TEST(GradientBuffersOfAStep, HeadsLeaveAGradient) {
  constexpr int64_t kWords = 512, kSamples = 3;
  const GptConfig gpt = LlamaConfig(/*layers=*/1, kBufferedWidth, /*heads=*/4, kBufferedInner,
                                    kBufferedTokens, kWords);
  const auto head = [&](LossImplementation loss, decltype(&MegatronGraph) with, int64_t degree) {
    const ModelGraph graph =
        with(*BuildGpt(gpt), AttentionImplementation::kFused, NumberType::kBf16, loss);
    TensorParallel split;
    split.degree = degree;
    return graph.layers.back().split.costs(kSamples, TokenSlice(), split);
  };
  const auto te = LossImplementation::kTransformerEngine, native = LossImplementation::kFused;
  constexpr int64_t kRows = kSamples * kBufferedTokens;
  for (const int64_t t : {1, 2}) {
    const int64_t logits = kRows * kWords / t, gradient = kWords * kBufferedWidth / t;
    EXPECT_EQ(head(native, MegatronGraph, t).kept - head(te, MegatronGraph, t).kept,
              FloatBytes(logits));
    EXPECT_EQ(head(te, MegatronCoreGraph, t).backward_weight_peak, FloatBytes(gradient));
    EXPECT_EQ(head(te, MegatronCoreGraph, t).backward_peak,
              FloatBytes(kRows * kBufferedWidth + gradient));
    EXPECT_EQ(head(native, MegatronCoreGraph, t).backward_peak,
              head(native, MegatronGraph, t).backward_peak);
  }
}

}  // namespace
}  // namespace pipelab
