#include "models/specs/adapters.h"

#include "gtest/gtest.h"
#include "models/specs/kept_activations.h"
#include "models/specs/megatron_kernels.h"
#include "models/zoo/gpt.h"

namespace pipelab {
namespace {

constexpr int64_t kRank = 8, kAdaptedTokens = 64, kAdaptedHidden = 128, kAdaptedInner = 352,
                  kAdaptedSamples = 2;

constexpr Adapters kAll = {kRank, /*all_products=*/true};

ModelGraph Frozen() {
  return WithMegatronActivations(WithMegatronKernels(
      *BuildGpt(LlamaConfig(2, kAdaptedHidden, 4, kAdaptedInner, kAdaptedTokens, 512)),
      AttentionImplementation::kFused));
}

TEST(AdaptersTest, TrainsTheAdaptersAlone) {
  // Inputs and outputs of a block: q, k and v in one product, the output's, the gate's and values'
  // in one, the last.
  const int64_t in_and_out = 4 * kAdaptedHidden + 2 * kAdaptedHidden +
                             (kAdaptedHidden + 2 * kAdaptedInner) + kAdaptedInner + kAdaptedHidden;
  EXPECT_EQ(WithAdapters(Frozen(), kAll).num_parameters(), 2 * kRank * in_and_out);
}

TEST(AdaptersTest, FrozenProductsHaveNoWeightGradients) {
  const ModelGraph before = Frozen(), after = WithAdapters(Frozen(), kAll);
  for (size_t i = 0; i < before.layers.size(); ++i) {
    const LayerCosts b = before.layers[i].costs(kAdaptedSamples),
                     a = after.layers[i].costs(kAdaptedSamples);
    const double more = a.forward.value() - b.forward.value();
    EXPECT_EQ(a.backward_weight.value(), more) << before.layers[i].name;
    EXPECT_EQ(a.backward_input.value() - b.backward_input.value(), more);
  }
  const int64_t rows = kAdaptedSamples * kAdaptedTokens;
  const LayerCosts mlp = after.layers[2].costs(kAdaptedSamples);
  EXPECT_EQ(mlp.backward_weight.value(),
            2.0 * static_cast<double>(
                      rows * kRank *
                      (kAdaptedHidden + 2 * kAdaptedInner + kAdaptedInner + kAdaptedHidden)));
}

TEST(AdaptersTest, BesideQueriesKeysAndValuesAlone) {
  const ModelGraph before = Frozen(), after = WithAdapters(Frozen(), {kRank});
  EXPECT_EQ(after.num_parameters(), 2 * kRank * 4 * kAdaptedHidden);
  // The feed-forward keeps no inputs of its products.
  const int64_t rows = kAdaptedSamples * kAdaptedTokens;
  EXPECT_EQ(
      before.layers[2].costs(kAdaptedSamples).kept - after.layers[2].costs(kAdaptedSamples).kept,
      Bytes(4 * rows * (kAdaptedHidden + kAdaptedInner)));
  EXPECT_EQ(
      after.layers[1].costs(kAdaptedSamples).kept - before.layers[1].costs(kAdaptedSamples).kept,
      Bytes(4 * rows * kRank));
}

// Operations' flops are those of the costs, of one device too.
TEST(AdaptersTest, OperationsHaveTheFlops) {
  const ModelGraph graph = WithAdapters(Frozen(), kAll);
  const TensorParallel split = {2, /*sequence=*/true, 1};
  for (const int i : {1, 2}) {
    const LayerSpec& layer = graph.layers[i];
    const LayerCosts costs = layer.split.costs(kAdaptedSamples, TokenSlice(), split);
    double flops = 0;
    for (const Operation& o :
         layer.split.operations(kAdaptedSamples, TokenSlice(), split).backward_weight) {
      flops += o.flops.value();
    }
    EXPECT_EQ(flops, costs.backward_weight.value());
  }
}

}  // namespace
}  // namespace pipelab
