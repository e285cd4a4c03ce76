#include <vector>

#include "gtest/gtest.h"
#include "models/graph/attention_workspace.h"
#include "models/specs/gpt_attention_spec.h"
#include "models/specs/unfused_attention_spec.h"

namespace pipelab {
namespace {

constexpr int64_t kPairTokens = 256, kPairHidden = 32, kPairHeads = 4;

LayerSpec Attention(bool causal) {
  GptAttentionSizes sizes;
  sizes.name = "attention";
  sizes.input = 0;
  sizes.tokens = kPairTokens;
  sizes.hidden = kPairHidden;
  sizes.heads = kPairHeads;
  sizes.causal = causal;
  return GptAttentionSpec(sizes);
}

LayerSpec Unfused(bool causal) {
  ModelGraph graph;
  graph.layers = {Attention(causal)};
  return WithUnfusedAttention(graph).layers[0];
}

Flops FlopsIn(const std::vector<Operation>& operations) {
  Flops flops;
  for (const Operation& o : operations) flops += o.flops;
  return flops;
}

TEST(UnfusedAttention, KeepsTheSoftmaxOfEveryHead) {
  const LayerCosts fused = Attention(false).costs(3), unfused = Unfused(false).costs(3);
  const Bytes pairs(4 * 3 * kPairHeads * kPairTokens * kPairTokens);
  EXPECT_EQ(unfused.kept - fused.kept, pairs);
  EXPECT_EQ(unfused.forward_peak - fused.forward_peak,
            2 * pairs - Bytes(4 * AttentionWorkspaceFloats(kPairTokens, kPairTokens)));
  EXPECT_EQ(unfused.backward_peak - fused.backward_peak,
            pairs - Bytes(4 * AttentionGradientWorkspaceFloats(kPairTokens, kPairTokens)));
  EXPECT_EQ(unfused.output, fused.output);
}

TEST(UnfusedAttention, ComputesAllPairsAndNothingTwice) {
  const LayerCosts fused = Attention(false).costs(2);
  for (bool causal : {false, true}) {
    const LayerSpec layer = Unfused(causal);
    const LayerCosts costs = layer.costs(2);
    const Flops product(2.0 * 2 * kPairTokens * kPairTokens * kPairHidden);
    EXPECT_EQ(costs.forward, fused.forward);
    EXPECT_EQ(costs.backward_input, fused.backward_input - product);
    EXPECT_EQ(costs.backward_weight, fused.backward_weight);
    const LayerOperations ops = layer.operations(2, TokenSlice());
    EXPECT_EQ(FlopsIn(ops.forward), costs.forward);
    EXPECT_EQ(FlopsIn(ops.backward_input), costs.backward_input);
    EXPECT_EQ(FlopsIn(ops.backward_weight), costs.backward_weight);
    EXPECT_EQ(layer.slice_costs, nullptr);
  }
}

}  // namespace
}  // namespace pipelab
