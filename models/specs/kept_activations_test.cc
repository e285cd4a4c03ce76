#include "models/specs/kept_activations.h"

#include <vector>

#include "gtest/gtest.h"
#include "models/specs/megatron_kernels.h"
#include "models/specs/unfused_attention_spec.h"
#include "models/zoo/gpt.h"

namespace pipelab {
namespace {

constexpr int64_t kBlockTokens = 512, kBlockHidden = 256, kBlockHeads = 8, kBlockSamples = 4;
constexpr int64_t kSbh = kBlockTokens * kBlockSamples * kBlockHidden,
                  kPairs = kBlockHeads * kBlockTokens * kBlockTokens * kBlockSamples;

ModelGraph GptBlock(double dropout) {
  GptConfig c;
  c.layers = 1;
  c.hidden = kBlockHidden;
  c.heads = kBlockHeads;
  c.tokens = kBlockTokens;
  c.vocabulary = 128;
  c.dropout = dropout;
  return *BuildGpt(c);
}

// Numbers kept of one block at 2 bytes a number, with the inputs of its two layers, but for what is
// kept for each row alone (statistics of norms; the logarithm of fused attention's sums), which the
// paper leaves out.
int64_t KeptHalves(const ModelGraph& graph, TensorParallel split) {
  int64_t bytes = 0;
  for (int i : {1, 2}) {
    const SplitRows rows(kBlockTokens * kBlockSamples, split);
    const LayerCosts costs = CostsOf(graph.layers[i], kBlockSamples, TokenSlice(), split);
    bytes += costs.kept.value() / 2 - 4 * rows.own + rows.own * kBlockHidden * 2;
  }
  return bytes - 2 * kBlockTokens * kBlockSamples * kBlockHeads / split.degree;
}

// Korthikanti et al. 2022, table 2.
TEST(KeptActivations, AreThoseOfThePaper) {
  const ModelGraph all = WithMegatronActivations(WithMegatronKernels(GptBlock(0.1)));
  const ModelGraph selective = WithSelectiveRecompute(all);
  for (const int64_t t : {1, 2, 4, 8}) {
    EXPECT_EQ(KeptHalves(all, {t, false}), kSbh * 10 + kSbh * 24 / t + 5 * kPairs / t) << t;
    EXPECT_EQ(KeptHalves(selective, {t, false}), kSbh * 10 + kSbh * 24 / t) << t;
    EXPECT_EQ(KeptHalves(all, {t, true}), (kSbh * 34 + 5 * kPairs) / t) << t;
    EXPECT_EQ(KeptHalves(selective, {t, true}), kSbh * 34 / t) << t;
    EXPECT_EQ(KeptHalves(GptBlock(0.1), {t, false}), kSbh * 4 + kSbh * 16 / t) << t;
    EXPECT_EQ(KeptHalves(GptBlock(0.1), {t, true}), kSbh * 20 / t) << t;
  }
  // Without dropout the same masks, and of the scores the softmax alone.
  const ModelGraph plain = WithMegatronActivations(WithMegatronKernels(GptBlock(0)));
  EXPECT_EQ(KeptHalves(plain, {}), kSbh * 34 + 2 * kPairs);
  EXPECT_EQ(KeptHalves(WithSelectiveRecompute(plain), {}), kSbh * 34);
  // Both norms' outputs (2 sbh each) and the GELU's (8 sbh) are the inputs of products that are
  // counted here.
  const ModelGraph fp8 =
      WithMegatronActivations(WithMegatronKernels(GptBlock(0)), ProductInputs::kHalfAsWide);
  EXPECT_EQ(KeptHalves(fp8, {}), kSbh * (34 - 6) + 2 * kPairs);
}

// Besides ours: the norm's output, the rows that routed experts take, what goes into all experts'
// second products, and the router's scores in float32.
TEST(KeptActivations, ExpertsKeepTheRowsThatTheyTake) {
  constexpr int64_t kInner = 64, kChosen = 2, kChoices = 3, kExperts = 8;
  GptConfig c = LlamaConfig(/*layers=*/1, kBlockHidden, kBlockHeads, kInner, kBlockTokens,
                            /*vocabulary=*/128);
  c.experts.experts = kExperts;
  c.experts.chosen = kChosen;
  c.experts.shared = 1;
  const LayerSpec ours = BuildGpt(c)->layers[2];
  const LayerSpec theirs = WithMegatronActivations(*BuildGpt(c)).layers[2];
  for (const int64_t t : {1, 4}) {
    const auto kept = [&](const LayerSpec& layer) {
      return CostsOf(layer, kBlockSamples, TokenSlice(), {t, false}).kept.value();
    };
    EXPECT_EQ(kept(theirs) - kept(ours),
              4 * (kSbh + kBlockTokens * kBlockSamples *
                              (kChosen * kBlockHidden + kChoices * kInner / t + 3 * kExperts)));
  }
}

// What each product takes is kept, also the normed latent rows of the device's tokens.
TEST(KeptActivations, LatentAttentionKeepsNormedRows) {
  GptConfig c =
      LlamaConfig(/*layers=*/1, kBlockHidden, kBlockHeads, /*feed_forward=*/64, kBlockTokens,
                  /*vocabulary=*/128);
  c.latent = {/*query_rank=*/48, /*rank=*/32, /*nope_size=*/16, /*rope_size=*/8, /*value_size=*/24};
  const LayerSpec ours = BuildGpt(c)->layers[1];
  const LayerSpec theirs = WithMegatronActivations(*BuildGpt(c)).layers[1];
  for (const TensorParallel& split : {TensorParallel{1, false}, TensorParallel{4, true}}) {
    const SplitRows rows(kBlockTokens * kBlockSamples, split);
    const int64_t heads = kBlockHeads / split.degree;
    const int64_t kept = CostsOf(ours, kBlockSamples, TokenSlice(), split).kept.value();
    // q, keys with values, and the output; both latent rows; statistics of three norms, and lse.
    EXPECT_EQ(kept, 4 * (rows.all * heads * (24 + 24 + 24 + 24) + rows.own * (48 + 32) +
                         rows.own * 3 + rows.all * heads));
    EXPECT_EQ(CostsOf(theirs, kBlockSamples, TokenSlice(), split).kept.value() - kept,
              4 * rows.own * (kBlockHidden + 48 + 32));
  }
}

TEST(KeptActivations, SelectiveRecomputeComputesTheScoresAgain) {
  const ModelGraph all = WithMegatronActivations(WithMegatronKernels(GptBlock(0.1)));
  const ModelGraph selective = WithSelectiveRecompute(all);
  EXPECT_TRUE(AllowsSelectiveRecompute(all));
  EXPECT_FALSE(AllowsSelectiveRecompute(selective));
  EXPECT_FALSE(AllowsSelectiveRecompute(GptBlock(0.1)));
  for (const int64_t t : {1, 4}) {
    const TensorShare a = ShareOf(all.layers[1], kBlockSamples, TokenSlice(), {t, false}),
                      b = ShareOf(selective.layers[1], kBlockSamples, TokenSlice(), {t, false});
    const double again = 2 * 2.0 * kPairs / static_cast<double>(t) * kBlockHidden / kBlockHeads;
    EXPECT_EQ(b.costs.forward, a.costs.forward);
    EXPECT_DOUBLE_EQ(b.costs.backward_input.value() - a.costs.backward_input.value(), again);
    EXPECT_EQ(b.costs.backward_weight, a.costs.backward_weight);
    EXPECT_EQ(b.operations.backward_input.size(), a.operations.backward_input.size() + 4);
    double flops = 0;
    for (const Operation& o : b.operations.backward_input) flops += o.flops.value();
    for (const Operation& o : a.operations.backward_input) flops -= o.flops.value();
    EXPECT_DOUBLE_EQ(flops, again);
    // The most of a step is not above what was kept: what goes comes back once, layer by layer.
    EXPECT_EQ(b.costs.kept + b.costs.backward_peak, a.costs.kept + a.costs.backward_peak);
  }
  const LayerCosts mlp = all.layers[2].costs(kBlockSamples);
  EXPECT_EQ(selective.layers[2].costs(kBlockSamples).kept, mlp.kept);
}

// Slices together keep what whole samples do, and keys and values once more; what one backward
// leaves for the next is gone after the first slice's. Less than ours, which have room for whole
// samples, where few slices are there.
TEST(KeptActivations, OfSlicesAddUp) {
  const ModelGraph graph =
      WithMegatronActivations(WithMegatronKernels(GptBlock(0), AttentionImplementation::kFused));
  ASSERT_TRUE(CheckTakesSlices(graph).ok());
  const std::vector<TokenSlice> slices = {{0, 256}, {256, 128}, {384, 128}};
  for (const TensorParallel split : {TensorParallel{1, false}, TensorParallel{8, true}}) {
    for (const LayerSpec& layer : graph.layers) {
      SCOPED_TRACE(layer.name);
      Bytes kept, carried, output;
      Flops flops;
      for (const TokenSlice& slice : slices) {
        const LayerCosts costs = CostsOf(layer, kBlockSamples, slice, split);
        kept += costs.kept;
        carried += costs.carried;
        output += costs.output;
        flops += costs.forward + costs.backward_input + costs.backward_weight;
        EXPECT_GE(costs.forward_peak, costs.kept + costs.output);
        EXPECT_LE(costs.kept_when_dropped, costs.kept);
      }
      const LayerCosts whole = CostsOf(layer, kBlockSamples, TokenSlice(), split);
      const bool attention = layer.kind == "gpt_attention";
      EXPECT_EQ(kept, whole.kept + FloatBytes(attention ? 2 * kSbh / split.degree : 0));
      EXPECT_EQ(carried, Bytes(0));
      EXPECT_EQ(output, whole.output);
      EXPECT_EQ(flops, whole.forward + whole.backward_input + whole.backward_weight);
      const LayerCosts one = CostsOf(layer, kBlockSamples, {0, kBlockTokens}, split);
      EXPECT_EQ(one.kept - one.kept_when_dropped, whole.kept);
    }
  }
}

}  // namespace
}  // namespace pipelab
