// Stage costs of one of the devices that divide each sample's tokens.
#include <algorithm>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "models/graph/context_part.h"
#include "models/specs/gpt_attention_spec.h"
#include "models/specs/gpt_latent_attention_spec.h"
#include "models/specs/kept_activations.h"
#include "models/specs/megatron_kernels.h"
#include "models/zoo/gpt.h"
#include "models/zoo/transformer.h"
#include "pipelines/cluster/catalog.h"
#include "pipelines/cost/stage_costs.h"
#include "tools/base/status_matchers.h"

namespace pipelab {
namespace {

using testing::HasSubstr;

constexpr int64_t kContextSamples = 2, kContextHidden = 32;

ModelGraph ContextGpt(int64_t tokens) {
  GptConfig c;
  c.layers = 1;
  c.hidden = kContextHidden;
  c.heads = 4;
  c.tokens = tokens;
  c.vocabulary = 40;
  return *BuildGpt(c);
}

// Embedding; attention; MLP; head.
ModelPartition LayerByLayer(const ModelGraph& graph) {
  return *MakeRangePartition(graph, {0, 1, 2, 3});
}

// 1 us a step, a byte a nanosecond.
StageCostOptions ContextOptions(int64_t context, int64_t tensor = 1, bool sequence = false) {
  StageCostOptions options;
  options.rate = FlopsPerSecond(1e9);
  const PathCost hop = {Microseconds(1), BytesPerSecond(1e9)};
  options.tensor = {{tensor, sequence, context}, hop, hop};
  return options;
}

CostTable ContextTable(const ModelGraph& graph, const StageCostOptions& options) {
  return *ComputeStageCosts(graph, LayerByLayer(graph), kContextSamples, options);
}

// Where chunks are whole blocks of query rows, attention is divided exactly, as all else is; the
// gather of keys and values takes C - 1 steps.
TEST(ContextStageCosts, WorkAndActivationsAreDivided) {
  constexpr int64_t kTokens = 1024;
  const ModelGraph graph = ContextGpt(kTokens);
  const CostTable whole = ContextTable(graph, ContextOptions(1));
  for (const int64_t c : {2, 4, 8}) {
    const CostTable part = ContextTable(graph, ContextOptions(c));
    const int64_t keys = 4 * kContextSamples * kTokens * 2 * kContextHidden;
    const int64_t gather = (1000 + keys / c) * (c - 1);
    for (int stage = 0; stage < 4; ++stage) {
      SCOPED_TRACE(stage);
      const StageCost &w = whole.stages[stage], &p = part.stages[stage];
      const int64_t gathers = stage == 1 ? 1 : 0;
      EXPECT_NEAR(p.forward.value(), static_cast<double>(w.forward.value()) / c + gathers * gather,
                  1);
      EXPECT_NEAR(p.backward_input.value(),
                  static_cast<double>(w.backward_input.value()) / c + 2 * gathers * gather, 1);
      EXPECT_NEAR(p.backward_weight.value(), static_cast<double>(w.backward_weight.value()) / c, 1);
      EXPECT_EQ(p.tensor_traffic.forward, Bytes(gathers * keys / c * (c - 1)));
      EXPECT_EQ(p.tensor_traffic.backward_input, Bytes(2 * gathers * keys / c * (c - 1)));
      EXPECT_EQ(p.memory.kept * c, w.memory.kept);
      EXPECT_EQ(p.memory.kept_for_weight * c, w.memory.kept_for_weight);
      EXPECT_EQ(p.memory.state, w.memory.state);
      EXPECT_EQ(p.memory.gradients, w.memory.gradients);
      EXPECT_EQ(p.step, w.step);
    }
    for (size_t e = 0; e < whole.edge_bytes.size(); ++e) {
      EXPECT_EQ(part.edge_bytes[e] * c, whole.edge_bytes[e]);
    }
  }
}

// Pairs of queries and keys of each device, counted one by one in blocks of query rows, are what
// the flops are of, on every device.
TEST(ContextStageCosts, EveryDeviceHasThePairsOfTheFlops) {
  for (const int64_t tokens : {256, 512, 720}) {
    const ModelGraph graph = ContextGpt(tokens);
    for (const int64_t c : {2, 3, 4}) {
      if (tokens % (2 * c) != 0) continue;
      const Flops scores = ShareOf(graph.layers[1], 1, TokenSlice(), {1, false, c}).costs.forward -
                           MatmulFlops(tokens / c, 4 * kContextHidden, kContextHidden);
      for (int64_t part = 0; part < c; ++part) {
        int64_t pairs = 0;
        for (const TokenSlice& chunk : ContextPart{c, part, true}.Tokens(tokens)) {
          for (int64_t row = 0; row < chunk.count; ++row) {
            const int64_t block_end = std::min(row / 64 * 64 + 64, chunk.count);
            pairs += chunk.first + block_end;
          }
        }
        EXPECT_EQ(scores.value(), 2 * MatmulFlops(1, pairs, kContextHidden).value());
      }
    }
  }
}

// With a window those of the device that has most of them: each block of rows and the keys that it
// sees.
TEST(ContextStageCosts, WindowsCountThePairsOfTheFullestDevice) {
  GptAttentionSizes sizes;
  sizes.name = "attention";
  sizes.tokens = 720;
  sizes.hidden = kContextHidden;
  sizes.heads = 1;
  for (const int64_t window : {1, 50, 64, 300, 720}) {
    sizes.window = window;
    const LayerSpec layer = GptAttentionSpec(sizes);
    for (const int64_t c : {1, 2, 3, 4}) {
      if (sizes.tokens % (2 * c) != 0) continue;
      int64_t most = 0;
      for (int64_t part = 0; part < c; ++part) {
        int64_t pairs = 0;
        for (const TokenSlice& chunk : ContextPart{c, part, c > 1}.Tokens(sizes.tokens)) {
          for (int64_t begin = 0; begin < chunk.count; begin += 64) {
            const int64_t rows = std::min<int64_t>(64, chunk.count - begin);
            const int64_t first = chunk.first + begin;
            pairs += rows * (first + rows - std::max<int64_t>(0, first + 1 - window));
          }
        }
        most = std::max(most, pairs);
      }
      const Flops scores = ShareOf(layer, 1, TokenSlice(), {1, false, c}).costs.forward -
                           MatmulFlops(sizes.tokens / c, 4 * kContextHidden, kContextHidden);
      EXPECT_EQ(scores.value(), 2 * MatmulFlops(1, most, kContextHidden).value())
          << window << ", " << c;
    }
  }
}

// Attention of 1024 tokens on 4 devices has 128 x 128 pairs a chunk, on diagonals those of blocks
// of 64 rows: 40960 in the first step, then 32768 in each. Keys and values take 3 hops, their
// gradients 2 beside the last steps and one home.
TEST(ContextStageCosts, HopsRunBesideTheirStepsAttention) {
  constexpr int64_t kTokens = 1024, kParts = 4, kPairs[] = {40960, 32768, 32768, 32768};
  constexpr int64_t kSent = 4 * kContextSamples * kTokens / kParts * 2 * kContextHidden;
  const ModelGraph graph = ContextGpt(kTokens);
  const CostTable whole = ContextTable(graph, ContextOptions(1));
  for (const double bandwidth : {1e9, 12e6, 4e6, 1e5}) {
    StageCostOptions options = ContextOptions(kParts);
    options.tensor.split.exchange = ContextExchange::kRing;
    options.tensor.context_hop = {Microseconds(1), BytesPerSecond(bandwidth)};
    const StageCost part = ContextTable(graph, options).stages[1];
    const double hop = 1000 + kSent * 1e9 / bandwidth;  // ns
    const auto attention = [&](int step, int products) {
      return products * MatmulFlops(kContextSamples, kPairs[step], kContextHidden).value();
    };
    double forward = static_cast<double>(whole.stages[1].forward.value()) / kParts;
    double backward = static_cast<double>(whole.stages[1].backward_input.value()) / kParts + hop;
    for (const int step : {0, 1, 2, 3}) {
      const double left = hop - 1000 - attention(step, 5);
      if (step < 3) forward += std::max(0.0, hop - attention(step, 2));
      if (step < 2) backward += std::max(0.0, left + 1000);
      if (step == 2) backward += std::max(0.0, 2 * left + 1000 + attention(step, 5));
      if (step == 3) backward += std::max(0.0, left + 1000);
    }
    EXPECT_NEAR(part.forward.value(), forward, 5) << bandwidth;
    EXPECT_NEAR(part.backward_input.value(), backward, 10) << bandwidth;
    EXPECT_EQ(part.tensor_traffic.forward, Bytes(3 * kSent));
    EXPECT_EQ(part.tensor_traffic.backward_input, Bytes(6 * kSent));
    EXPECT_EQ(ContextTable(graph, options).stages[1].memory.kept * kParts,
              whole.stages[1].memory.kept);
  }
}

// By heads a device has the pairs of whole samples for 1/C of its heads. All-to-alls bring q, k and
// v together and take the output back, backward its gradient and those of q, k and v; the output is
// kept twice.
TEST(ContextStageCosts, HeadsAreExchangedForTokens) {
  constexpr int64_t kTokens = 1000;  // the last block of query rows is not whole
  const ModelGraph graph = ContextGpt(kTokens);
  const CostTable whole = ContextTable(graph, ContextOptions(1));
  for (const int64_t c : {2, 4}) {
    StageCostOptions options = ContextOptions(c);
    options.tensor.split.exchange = ContextExchange::kHeads;
    options.tensor.context_path = {Microseconds(5), BytesPerSecond(2e9)};
    const CostTable part = ContextTable(graph, options);
    const int64_t out = 4 * kContextSamples * kTokens / c * kContextHidden, qkv = 3 * out;
    const int64_t exchange = 2 * 5000 + (qkv + out) / 2;  // ns
    for (int stage = 0; stage < 4; ++stage) {
      SCOPED_TRACE(stage);
      const StageCost &w = whole.stages[stage], &p = part.stages[stage];
      const int64_t one = stage == 1 ? 1 : 0;
      EXPECT_NEAR(p.forward.value(), static_cast<double>(w.forward.value()) / c + one * exchange,
                  1);
      EXPECT_NEAR(p.backward_input.value(),
                  static_cast<double>(w.backward_input.value()) / c + one * exchange, 1);
      EXPECT_EQ(p.tensor_traffic.forward, Bytes(one * (qkv + out) * (c - 1) / c));
      EXPECT_EQ(p.tensor_traffic.backward_input, p.tensor_traffic.forward);
      EXPECT_EQ(p.memory.kept * c, w.memory.kept + Bytes(one * out * c));
      EXPECT_EQ(p.memory.kept_for_weight * c, w.memory.kept_for_weight);
    }
  }
}

// Pairs counted one by one; windows too, of which all devices have as many.
TEST(ContextStageCosts, EveryPartOfTheHeadsHasThePairsOfWholeSamples) {
  GptAttentionSizes sizes;
  sizes.name = "attention";
  sizes.tokens = 720;
  sizes.hidden = kContextHidden;
  sizes.heads = 4;
  sizes.kv_heads = 2;
  TensorParallel split = {1, false, 2};
  split.exchange = ContextExchange::kHeads;
  for (const int64_t window : {0, 1, 50, 64, 300}) {
    sizes.window = window;
    int64_t pairs = 0;
    for (int64_t begin = 0; begin < sizes.tokens; begin += 64) {
      const int64_t end = std::min(begin + 64, sizes.tokens);
      const int64_t first = window == 0 ? 0 : std::max<int64_t>(0, begin + 1 - window);
      pairs += (end - begin) * (end - first);
    }
    const LayerSpec layer = GptAttentionSpec(sizes);
    const TensorShare share = ShareOf(layer, 1, TokenSlice(), split);
    const Flops products = MatmulFlops(sizes.tokens / 2, 3 * kContextHidden, kContextHidden);
    EXPECT_EQ((share.costs.forward - products).value(),
              2 * MatmulFlops(1, pairs, kContextHidden / 2).value());
    for (const Operation& o : share.operations.forward) {
      if (o.kind != OperationKind::kAttention) continue;
      EXPECT_EQ(o.m, sizes.tokens);
      EXPECT_EQ(o.n, 2);  // heads
      // Tokens of half of q and of the output, and of one head of k and of v.
      EXPECT_EQ(o.numbers, 2 * sizes.tokens * (kContextHidden / 2 + kContextHidden / 4));
    }
  }
}

// Forward and backward of attention at their fullest, by hand: 16 tokens, two devices.
TEST(ContextStageCosts, PeaksByHand) {
  const ModelGraph graph = ContextGpt(16);
  const auto layer = ShareOf(graph.layers[1], kContextSamples, TokenSlice(), {1, false, 2}).costs;
  const int64_t m = kContextSamples * 8, mc = m * kContextHidden, keys = 2 * m * 2 * kContextHidden;
  const int64_t statistics = 2 * m, lse = m * 4, scratch = 4 * 16;
  const int64_t gathered = 3 * mc + 2 * keys;             // while they are put in order
  const int64_t attends = lse + 4 * mc + keys + scratch;  // beside them
  const int64_t branch = lse + 4 * mc + mc;
  EXPECT_EQ(layer.forward_peak, Bytes(4 * (statistics + std::max({gathered, attends, branch}))));
  EXPECT_EQ(layer.backward_input_peak, Bytes(4 * (4 * mc + 2 * scratch + 2 * keys)));
  EXPECT_EQ(layer.kept, Bytes(4 * (statistics + lse + 4 * mc)));
  EXPECT_EQ(layer.output, Bytes(4 * mc));

  // Round a ring of four: 8 tokens of 32, chunks of 4. Two parts of keys and values, the part of a
  // chunk's output that is merged, its sums and scores; backward three gradients more.
  TensorParallel split = {1, false, 4};
  split.exchange = ContextExchange::kRing;
  const auto ring = ShareOf(ContextGpt(32).layers[1], kContextSamples, TokenSlice(), split).costs;
  const int64_t own = m * 2 * kContextHidden, scores = 4 * 4;
  EXPECT_EQ(ring.forward_peak,
            Bytes(4 * (statistics + lse + 4 * mc + 2 * own + 4 * kContextHidden + 4 * 4 + scores)));
  EXPECT_EQ(ring.backward_input_peak, Bytes(4 * (4 * mc + 2 * scores + 5 * own)));
  EXPECT_EQ(ring.kept, layer.kept);

  // By heads: 16 tokens of half of the heads. q, k, v, the output once kept and twice on its way.
  split = {1, false, 2};
  split.exchange = ContextExchange::kHeads;
  const auto heads = ShareOf(graph.layers[1], kContextSamples, TokenSlice(), split).costs;
  EXPECT_EQ(heads.forward_peak, Bytes(4 * (statistics + lse + 4 * mc + 2 * mc)));
  const int64_t whole_scratch = 16 * 16;
  EXPECT_EQ(heads.backward_input_peak, Bytes(4 * (4 * mc + 2 * whole_scratch)));
  EXPECT_EQ(heads.kept, layer.kept + Bytes(4 * mc));
  EXPECT_EQ(heads.kept_for_weight, layer.kept_for_weight);
}

// Latent attention exchanges the keys and values of all its heads, and keeps its own.
TEST(ContextStageCosts, LatentAttention) {
  GptLatentAttentionSizes sizes;
  sizes.name = "attention";
  sizes.tokens = 1024;
  sizes.hidden = kContextHidden;
  sizes.heads = 4;
  sizes.latent = {12, 8, 6, 4, 10};
  const LayerSpec layer = GptLatentAttentionSpec(sizes);
  const Bytes keys(4 * kContextSamples * sizes.tokens * sizes.heads * (6 + 4 + 10));
  const TensorShare whole = ShareOf(layer, kContextSamples, TokenSlice(), {});
  for (const ContextExchange exchange :
       {ContextExchange::kGather, ContextExchange::kRing, ContextExchange::kHeads}) {
    TensorParallel split = {1, false, 4};
    split.exchange = exchange;
    const TensorShare part = ShareOf(layer, kContextSamples, TokenSlice(), split);
    const int64_t token = 4 * kContextSamples * sizes.tokens * sizes.heads;
    const bool heads = exchange == ContextExchange::kHeads;
    EXPECT_EQ(part.costs.kept * 4, whole.costs.kept + Bytes(heads ? token * 10 : 0));
    EXPECT_NEAR(part.costs.forward.value(), whole.costs.forward.value() / 4, 1);
    EXPECT_NEAR(part.costs.backward_input.value(), whole.costs.backward_input.value() / 4, 1);
    if (heads) {  // q, then keys and values, then the output
      ASSERT_EQ(part.context.forward.size(), 3);
      EXPECT_EQ(part.context.forward[0].bytes * 4, Bytes(token * (6 + 4)));
      EXPECT_EQ(part.context.forward[1].bytes * 4, keys);
      EXPECT_EQ(part.context.forward[2].bytes * 4, Bytes(token * 10));
      EXPECT_EQ(part.context.backward_input[0].bytes, part.context.forward[2].bytes);
      continue;
    }
    const bool ring = exchange == ContextExchange::kRing;
    ASSERT_EQ(part.context.forward.size(), ring ? 3 : 1);
    EXPECT_EQ(part.context.forward[0].bytes * (ring ? 4 : 1), keys);
  }
}

// Both divisions together, with rows split by tokens too.
TEST(ContextStageCosts, WithTensorParallelGroups) {
  constexpr int64_t kTokens = 1024;
  const ModelGraph graph = ContextGpt(kTokens);
  for (const bool sequence : {false, true}) {
    const CostTable group = ContextTable(graph, ContextOptions(1, 2, sequence));
    const CostTable both = ContextTable(graph, ContextOptions(2, 2, sequence));
    for (int stage = 0; stage < 4; ++stage) {
      EXPECT_EQ(both.stages[stage].memory.kept * 2, group.stages[stage].memory.kept);
      EXPECT_EQ(both.stages[stage].memory.state, group.stages[stage].memory.state);
      EXPECT_EQ(both.stages[stage].step, group.stages[stage].step);
    }
    const TensorShare one =
                          ShareOf(graph.layers[1], kContextSamples, TokenSlice(), {2, sequence, 1}),
                      two =
                          ShareOf(graph.layers[1], kContextSamples, TokenSlice(), {2, sequence, 2});
    ASSERT_EQ(one.forward.size(), two.forward.size());
    for (size_t i = 0; i < one.forward.size(); ++i) {
      EXPECT_EQ(two.forward[i].bytes * 2, one.forward[i].bytes);
    }
    ASSERT_EQ(two.context.forward.size(), 1);
    EXPECT_EQ(two.context.forward[0].bytes,
              Bytes(4 * kContextSamples * kTokens * kContextHidden));  // half of k, v
    EXPECT_TRUE(one.context.forward.empty());
  }
}

// Predictions of published systems: their kernels' rows and kept activations are divided, too.
TEST(ContextStageCosts, MegatronsKernels) {
  constexpr int64_t kTokens = 1024;
  const ModelGraph graph = WithMegatronActivations(
      WithMegatronKernels(ContextGpt(kTokens), AttentionImplementation::kFused));
  StageCostOptions one = ContextOptions(1), four = ContextOptions(4);
  Machine machine = {LoadCluster("--cluster", "dgx-a100")->device, NumberType::kBf16};
  machine.device.host_launch.reset();  // the host would take longer than these few numbers
  one.machine = four.machine = machine;
  const CostTable whole = ContextTable(graph, one), part = ContextTable(graph, four);
  for (int stage = 0; stage < 4; ++stage) {
    EXPECT_EQ(part.stages[stage].memory.kept * 4, whole.stages[stage].memory.kept) << stage;
    EXPECT_LT(part.stages[stage].backward_weight, whole.stages[stage].backward_weight) << stage;
  }
}

TEST(ContextStageCosts, RefusesLayersThatNeedOtherTokens) {
  const auto message = [](const ModelGraph& graph, const StageCostOptions& options) {
    const ModelPartition all = *MakeRangePartition(graph, {0});
    return std::string(ComputeStageCosts(graph, all, kContextSamples, options).status().message());
  };
  EXPECT_THAT(
      message(WithMegatronKernels(ContextGpt(64)), ContextOptions(2)),
      HasSubstr("--context_parallel=2: layer \"block0/attention\" (unfused_attention) cannot "
                "be computed by devices with parts of the tokens"));
  TransformerConfig c;
  c.layers = 2;
  c.hidden = kContextHidden;
  c.heads = 4;
  c.feed_forward = 80;
  c.source_tokens = c.target_tokens = 16;
  c.vocabulary = 40;
  EXPECT_THAT(message(*BuildTransformer(c), ContextOptions(2)),
              HasSubstr("--context_parallel=2: layer"));
  EXPECT_THAT(message(ContextGpt(16), ContextOptions(16)), HasSubstr("the nearest that does is 8"));
  StageCostOptions heads = ContextOptions(8, /*tensor=*/1);
  heads.tensor.split.exchange = ContextExchange::kHeads;
  EXPECT_THAT(message(ContextGpt(16), heads),
              HasSubstr("--context_parallel=8: with context_exchange=heads it must divide the 4 "
                        "heads of layer \"block0/attention\" that a device has; the nearest "
                        "--context_parallel that does is 4"));
  GptConfig grouped = LlamaConfig(/*layers=*/1, kContextHidden, /*heads=*/4, /*feed_forward=*/24,
                                  /*tokens=*/16, /*vocabulary=*/40);
  grouped.kv_heads = 2;
  heads.tensor.split.context = 4;
  EXPECT_THAT(message(*BuildGpt(grouped), heads),
              HasSubstr("it must divide the 2 key and value heads of layer"));
  StageCostOptions slices = ContextOptions(2);
  slices.slices = {8, 8};
  EXPECT_THAT(message(ContextGpt(16), slices),
              HasSubstr("--context_parallel: not with token slices"));
}

}  // namespace
}  // namespace pipelab
