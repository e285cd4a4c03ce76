#include "models/specs/recomputed_modules.h"

#include <string>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "models/graph/cost_math.h"
#include "models/specs/megatron_kernels.h"
#include "models/zoo/gpt.h"
#include "tools/base/status_matchers.h"

namespace pipelab {
namespace {

using testing::HasSubstr;

constexpr int64_t kModuleTokens = 64, kModuleHidden = 128, kModuleInner = 352, kModuleSamples = 2;
constexpr int64_t kRows = kModuleSamples * kModuleTokens;

GptConfig Dense() { return LlamaConfig(2, kModuleHidden, 4, kModuleInner, kModuleTokens, 512); }
GptConfig WithExperts() {
  GptConfig c = Dense();
  c.experts.experts = 8;
  c.experts.chosen = 2;
  return c;
}
GptConfig Latent() {
  GptConfig c = Dense();
  c.head_size = 0;
  c.kv_heads = 0;
  c.latent = {64, 32, 16, 8, 16};
  return c;
}

ModelGraph WithKept(const GptConfig& c) {
  return WithMegatronActivations(
      WithMegatronKernels(*BuildGpt(c), AttentionImplementation::kFused));
}

// What recomputation changes of a layer.
struct Change {
  Bytes kept;          // less
  double flops = 0;    // of the input gradient, more
  size_t kernels = 0;  // more
};

Change ChangeOf(const GptConfig& c, const std::vector<std::string>& modules, int layer) {
  const ModelGraph before = WithKept(c), after = *WithRecomputedModules(WithKept(c), modules);
  const LayerSpec &b = before.layers[layer], &a = after.layers[layer];
  const LayerCosts cb = b.costs(kModuleSamples), ca = a.costs(kModuleSamples);
  EXPECT_EQ(ca.forward.value(), cb.forward.value());
  EXPECT_EQ(ca.backward_weight.value(), cb.backward_weight.value());
  const auto kernels = [](const LayerSpec& l) {
    return l.operations(kModuleSamples, TokenSlice()).backward_input.size();
  };
  return {cb.kept - ca.kept, ca.backward_input.value() - cb.backward_input.value(),
          kernels(a) - kernels(b)};
}

TEST(RecomputedModulesTest, CoreOfFusedAttentionTakesTimeAlone) {
  const Change change = ChangeOf(Dense(), {"core_attn"}, 1);
  EXPECT_EQ(change.kept, Bytes(0));
  EXPECT_EQ(change.kernels, 1);
  double flops = 0;
  for (const Operation& o :
       WithKept(Dense()).layers[1].operations(kModuleSamples, TokenSlice()).forward) {
    if (o.kind == OperationKind::kAttention) flops += o.flops.value();
  }
  EXPECT_GT(flops, 0);
  EXPECT_EQ(change.flops, flops);
  EXPECT_EQ(ChangeOf(Dense(), {"core_attn"}, 2).kernels, 0);
}

// Devices with parts of the tokens exchange again what the forward did, and the output in the form
// of heads is not kept.
TEST(RecomputedModulesTest, CoreOfPartedAttentionExchangesAgain) {
  for (const bool latent : {false, true}) {
    const GptConfig c = latent ? Latent() : Dense();
    const LayerSpec before = WithKept(c).layers[1],
                    after = WithRecomputedModules(WithKept(c), {"core_attn"})->layers[1];
    for (const ContextExchange exchange :
         {ContextExchange::kGather, ContextExchange::kRing, ContextExchange::kHeads}) {
      TensorParallel split{2, false, 2};
      split.exchange = exchange;
      const auto of = [&](const LayerSpec& layer) {
        return layer.split.context_collectives(kModuleSamples, TokenSlice(), split);
      };
      EXPECT_EQ(of(after).backward_input.size(),
                of(before).backward_input.size() + of(before).forward.size());
      const auto kept = [&](const LayerSpec& layer) {
        return layer.split.costs(kModuleSamples, TokenSlice(), split).kept;
      };
      const int64_t output = kModuleSamples * kModuleTokens / 2 * (latent ? 4 * 16 : kModuleHidden);
      EXPECT_EQ(kept(before) - kept(after),
                exchange == ContextExchange::kHeads ? FloatBytes(output / 2) : Bytes(0));
    }
  }
}

TEST(RecomputedModulesTest, NormsLetTheirOutputsGo) {
  for (const int layer : {1, 2}) {
    const Change change = ChangeOf(Dense(), {"layernorm"}, layer);
    EXPECT_EQ(change.kept, Bytes(4 * kRows * kModuleHidden));
    EXPECT_EQ(change.flops, 0);
    EXPECT_EQ(change.kernels, 1);
  }
}

TEST(RecomputedModulesTest, FeedForwardKeepsNothing) {
  const ModelGraph before = WithKept(Dense());
  const Change change = ChangeOf(Dense(), {"mlp"}, 2);
  EXPECT_EQ(change.kept, before.layers[2].costs(kModuleSamples).kept);
  EXPECT_EQ(change.flops, before.layers[2].costs(kModuleSamples).forward.value());
  EXPECT_EQ(ChangeOf(WithExperts(), {"mlp"}, 2).kernels, 0);
  EXPECT_EQ(ChangeOf(WithExperts(), {"moe"}, 2).kept,
            WithKept(WithExperts()).layers[2].costs(kModuleSamples).kept);
}

TEST(RecomputedModulesTest, ActivationOfExperts) {
  const Change change = ChangeOf(WithExperts(), {"moe_act"}, 2);
  EXPECT_EQ(change.kept, Bytes(4 * kRows * 2 * kModuleInner));  // two experts of each token
  EXPECT_EQ(change.flops, 0);
  EXPECT_EQ(change.kernels, 1);
}

TEST(RecomputedModulesTest, UpProjectionsOfLatentAttention) {
  const Change change = ChangeOf(Latent(), {"mla_up_proj"}, 1);
  EXPECT_EQ(change.kept, Bytes(4 * kRows * 4 * (2 * 24 + 16)));
  EXPECT_EQ(change.flops, 2.0 * kRows * (64 * 4 * 24 + 32 * 4 * 32));
  EXPECT_EQ(change.kernels, 4);  // two products, q turned, keys and values made
}

TEST(RecomputedModulesTest, UnderFp8InputsOfProductsAreHalfAsWide) {
  const auto kept = [](const std::vector<std::string>& modules) {
    ModelGraph graph = WithMegatronActivations(
        WithMegatronKernels(*BuildGpt(Dense()), AttentionImplementation::kFused),
        ProductInputs::kHalfAsWide);
    return WithRecomputedModules(std::move(graph), modules, ProductInputs::kHalfAsWide)
        ->layers[1]
        .costs(kModuleSamples)
        .kept;
  };
  EXPECT_EQ(kept({}) - kept({"layernorm"}), Bytes(2 * kRows * kModuleHidden));
}

TEST(RecomputedModulesTest, AGroupExchangesAgain) {
  const TensorParallel split = {2, /*sequence=*/true, 1};
  const auto exchanges = [&](const ModelGraph& graph) {
    return graph.layers[2].split.collectives(kModuleSamples, TokenSlice(), split);
  };
  const TensorCollectives before = exchanges(WithKept(Dense()));
  const TensorCollectives after = exchanges(*WithRecomputedModules(WithKept(Dense()), {"mlp"}));
  EXPECT_EQ(after.backward_input.size(), before.backward_input.size() + before.forward.size());
}

// Two norms, k and up, the output's product, rotary positions, the residual, the gate.
TEST(RecomputedModulesTest, EverySecondProduct) {
  const std::vector<std::string> op = {"every_second_product"};
  const Change attention = ChangeOf(Dense(), op, 1);
  EXPECT_EQ(attention.kept, Bytes(4 * kRows * 2 * kModuleHidden));  // the norm's output, and k
  EXPECT_EQ(attention.flops, 2.0 * kRows * kModuleHidden * (kModuleHidden + kModuleHidden));
  EXPECT_EQ(attention.kernels, 5);
  const Change feed_forward = ChangeOf(Dense(), op, 2);
  EXPECT_EQ(feed_forward.kept, Bytes(4 * kRows * (kModuleHidden + 2 * kModuleInner)));
  EXPECT_EQ(feed_forward.flops, 2.0 * kRows * kModuleHidden * kModuleInner);
  EXPECT_EQ(feed_forward.kernels, 3);
  GptConfig grouped = Dense();
  grouped.kv_heads = 1;
  EXPECT_EQ(ChangeOf(grouped, op, 1).flops, 2.0 * kRows * kModuleHidden * kModuleHidden * 1.25);
  // Gathers come again, and sums do not.
  const TensorParallel split = {2, /*sequence=*/true, 1};
  const auto exchanges = [&](const ModelGraph& graph) {
    return graph.layers[2]
        .split.collectives(kModuleSamples, TokenSlice(), split)
        .backward_input.size();
  };
  EXPECT_EQ(exchanges(*WithRecomputedModules(WithKept(Dense()), op)),
            exchanges(WithKept(Dense())) + 1);
}

// Narrow products of q and of keys and values; or, without the first, that and the output's.
TEST(RecomputedModulesTest, EverySecondProductOfLatentAttention) {
  const std::vector<std::string> op = {"every_second_product"};
  const Change wide = ChangeOf(Latent(), op, 1);
  EXPECT_EQ(wide.flops, ChangeOf(Latent(), {"mla_up_proj"}, 1).flops);
  EXPECT_EQ(wide.kept, Bytes(4 * kRows * (4 * (2 * 24 + 16) + kModuleHidden + 64 + 32)));
  GptConfig one = Latent();
  one.latent.query_rank = 0;
  const Change narrow = ChangeOf(one, op, 1);
  EXPECT_EQ(narrow.flops, 2.0 * kRows * kModuleHidden * ((32 + 8) + 4 * 16));
  EXPECT_EQ(narrow.kept, Bytes(4 * kRows * (4 * 8 + 32 + 8 + kModuleHidden + 32)));
}

// Grouped products come again; rows that came from other devices are kept.
TEST(RecomputedModulesTest, EverySecondProductOfExperts) {
  const Change change = ChangeOf(WithExperts(), {"every_second_product"}, 2);
  const ModelGraph before = WithKept(WithExperts());
  EXPECT_EQ(change.flops, before.layers[2].costs(kModuleSamples).forward.value());
  EXPECT_EQ(change.kept,
            Bytes(4 * kRows * (2 * 3 * kModuleInner + kModuleHidden + 2 * kModuleHidden)));
  EXPECT_LT(change.kept, before.layers[2].costs(kModuleSamples).kept);
}

TEST(RecomputedModulesTest, SharedExperts) {
  GptConfig c = WithExperts();
  EXPECT_EQ(ChangeOf(c, {"shared_experts"}, 2).kernels, 0);
  c.experts.shared = 1;
  const Change change = ChangeOf(c, {"shared_experts"}, 2);
  EXPECT_EQ(change.kept, Bytes(4 * kRows * 3 * kModuleInner));
  EXPECT_EQ(change.flops, 2.0 * kRows * kModuleHidden * 3 * kModuleInner);
  EXPECT_EQ(change.kernels, 3);
  // A module that is rebuilt as a whole has no parts that are rebuilt once more.
  const Change whole = ChangeOf(c, {"moe"}, 2), both = ChangeOf(c, {"shared_experts", "moe"}, 2);
  EXPECT_EQ(both.kept, whole.kept);
  EXPECT_EQ(both.flops, whole.flops);
}

TEST(RecomputedModulesTest, OfUnfusedAttentionNormAndScores) {
  const auto kept = [](const std::vector<std::string>& modules) {
    ModelGraph graph = WithMegatronActivations(WithMegatronKernels(*BuildGpt(Dense())));
    return WithRecomputedModules(std::move(graph), modules)->layers[1].costs(kModuleSamples).kept;
  };
  const Bytes scores = kept({}) - kept({"core_attn"});
  EXPECT_EQ(scores, Bytes(4 * kModuleSamples * 4 * kModuleTokens * kModuleTokens));
  EXPECT_EQ(kept({}) - kept({"core_attn", "layernorm"}), scores + Bytes(4 * kRows * kModuleHidden));
}

TEST(RecomputedModulesTest, OtherNames) {
  EXPECT_THAT(WithRecomputedModules(WithKept(Dense()), {"mhc"}).status().message(),
              HasSubstr("recomputation of \"mhc\""));
}

}  // namespace
}  // namespace pipelab
