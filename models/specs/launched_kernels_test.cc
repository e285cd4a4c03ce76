#include "models/specs/launched_kernels.h"

#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "models/specs/megatron_kernels.h"
#include "models/zoo/gpt.h"

namespace pipelab {
namespace {

constexpr int64_t kLlamaTokens = 32, kLlamaHidden = 64, kLlamaInner = 128, kLlamaWords = 96;

ModelGraph Llama(int64_t experts = 0) {
  GptConfig c =
      LlamaConfig(/*layers=*/2, kLlamaHidden, /*heads=*/4, kLlamaInner, kLlamaTokens, kLlamaWords);
  c.experts.experts = experts;
  c.experts.chosen = experts > 0 ? 2 : 0;
  return WithMegatronKernels(BuildGpt(c).value(), AttentionImplementation::kFused);
}

const LayerSpec& Find(const ModelGraph& graph, const char* kind) {
  for (const LayerSpec& layer : graph.layers) {
    if (layer.kind == kind) return layer;
  }
  ADD_FAILURE() << kind;
  return graph.layers[0];
}

TensorShare ShareOfKind(const ModelGraph& graph, const char* kind, TensorParallel split = {}) {
  return ShareOf(Find(graph, kind), /*samples=*/1, TokenSlice(), split);
}

int64_t NumbersOf(const std::vector<Operation>& pass) {
  int64_t numbers = 0;
  for (const Operation& o : pass) numbers += o.own ? 0 : o.numbers;
  return numbers;
}

int64_t More(const ModelGraph& graph, const ModelGraph& plain, const char* kind,
             std::vector<Operation> LayerOperations::*pass, TensorParallel split = {}) {
  return NumbersOf(ShareOfKind(graph, kind, split).operations.*pass) -
         NumbersOf(ShareOfKind(plain, kind, split).operations.*pass);
}

// A norm casts the first product's input. Read 2 bytes, written 1 twice: 2 numbers of half
// precision.
TEST(Fp8Casts, InputsForwardAndGradientsBackward) {
  const ModelGraph plain = Llama(), cast = WithFp8Casts(Llama());
  EXPECT_EQ(More(cast, plain, "gpt_mlp", &LayerOperations::forward),
            2 * kLlamaTokens * kLlamaInner);
  EXPECT_EQ(More(cast, plain, "gpt_mlp", &LayerOperations::backward_input),
            2 * kLlamaTokens * (2 * kLlamaInner + kLlamaHidden));
  EXPECT_EQ(More(cast, plain, "gpt_mlp", &LayerOperations::backward_weight), 0);
  EXPECT_EQ(More(cast, plain, "gpt_attention", &LayerOperations::forward),
            2 * kLlamaTokens * kLlamaHidden);
  EXPECT_EQ(More(cast, plain, "gpt_head", &LayerOperations::forward), 0);
}

// On two devices with the rows of half the tokens each the second product's gradient is cast before
// it is gathered.
TEST(Fp8Casts, GradientsBeforeTheyAreGathered) {
  const ModelGraph plain = Llama(), cast = WithFp8Casts(Llama());
  const TensorParallel split = {/*degree=*/2, /*sequence=*/true};
  EXPECT_EQ(More(cast, plain, "gpt_mlp", &LayerOperations::backward_input, split),
            2 * kLlamaTokens * kLlamaInner + 2 * kLlamaTokens / 2 * kLlamaHidden);
}

TEST(Fp8Casts, HeadAndRouterStayInHalfPrecision) {
  const ModelGraph cast = WithFp8Casts(Llama(/*experts=*/8));
  const auto half = [&](const char* kind) {
    int count = 0;
    for (const Operation& o : ShareOfKind(cast, kind).operations.forward) count += o.half;
    return count;
  };
  EXPECT_EQ(half("gpt_head"), 1);
  EXPECT_EQ(half("gpt_experts"), 1);
  EXPECT_EQ(half("gpt_attention"), 0);
}

TEST(EagerKernels, GateAndLoss) {
  const ModelGraph plain = Llama(), eager = WithEagerKernels(Llama());
  const int64_t gate = kLlamaTokens * kLlamaInner, logits = kLlamaTokens * kLlamaWords;
  EXPECT_EQ(More(eager, plain, "gpt_mlp", &LayerOperations::forward), (5 - 3) * gate);
  EXPECT_EQ(More(eager, plain, "gpt_mlp", &LayerOperations::backward_input), (13 - 5) * gate);
  EXPECT_EQ(ShareOfKind(eager, "gpt_mlp").costs.kept - ShareOfKind(plain, "gpt_mlp").costs.kept,
            Bytes(4 * gate));  // counted with 4 a number
  EXPECT_EQ(More(eager, plain, "gpt_head", &LayerOperations::forward), (19 - 5) * logits);
  EXPECT_EQ(More(eager, plain, "gpt_head", &LayerOperations::backward_input), (7 - 3) * logits);
}

TEST(EagerKernels, CopiesInFrontOfAttention) {
  const ModelGraph plain = Llama(), eager = WithEagerKernels(Llama());
  const TensorParallel halves = {/*degree=*/2, /*sequence=*/true};
  for (const TensorParallel& split : {TensorParallel(), halves}) {
    const int64_t q = kLlamaTokens * kLlamaHidden / split.degree;
    EXPECT_EQ(More(eager, plain, "gpt_attention", &LayerOperations::forward, split), 14 * q);
    EXPECT_EQ(More(eager, plain, "gpt_attention", &LayerOperations::backward_input, split), 16 * q);
    EXPECT_EQ(ShareOfKind(eager, "gpt_attention", split).costs.kept -
                  ShareOfKind(plain, "gpt_attention", split).costs.kept,
              Bytes(4 * 2 * q));
  }
}

// Two numbers read and one written in 4 bytes, beside one in 2: five of half precision, in the
// place of Megatron-LM's sums.
TEST(EagerKernels, AddGradientsToSumsInFourBytes) {
  const ModelGraph plain = Llama(), eager = WithEagerKernels(Llama());
  for (const int64_t degree : {1, 2}) {
    const TensorParallel split = {degree, /*sequence=*/true};
    for (const char* kind : {"gpt_embedding", "gpt_attention", "gpt_mlp", "gpt_head"}) {
      int64_t parameters = 0, others = 0;
      for (const ParameterSpec& p : Find(plain, kind).parameters) parameters += p.size_on(split);
      for (const Operation& o : ShareOfKind(plain, kind, split).operations.backward_weight) {
        others += o.adds_gradient ? 0 : o.numbers;
      }
      EXPECT_EQ(NumbersOf(ShareOfKind(eager, kind, split).operations.backward_weight),
                others + 5 * parameters)
          << kind << degree;
    }
  }
}

// The gradient of a branch's rows is still gathered first.
TEST(SumsBesideWeights, MoveToTheWeightGradient) {
  const ModelGraph plain = Llama(), beside = WithSumsBesideWeights(Llama());
  for (const bool sequence : {false, true}) {
    const TensorParallel split = {/*degree=*/2, sequence};
    for (const char* kind : {"gpt_attention", "gpt_mlp"}) {
      const TensorShare before = ShareOfKind(plain, kind, split);
      const TensorShare now = ShareOfKind(beside, kind, split);
      ASSERT_EQ(before.backward_input.size(), sequence ? 2u : 1u);
      EXPECT_EQ(now.forward.size(), before.forward.size());
      EXPECT_EQ(now.backward_input.size(), before.backward_input.size() - 1);
      ASSERT_EQ(now.backward_weight.size(), before.backward_weight.size() + 1);
      EXPECT_EQ(now.backward_weight.back().kind, before.backward_input.back().kind);
      EXPECT_EQ(now.backward_weight.back().bytes, before.backward_input.back().bytes);
    }
  }
  EXPECT_TRUE(ShareOfKind(beside, "gpt_mlp").backward_weight.empty());
}

// On four devices a token's rows are on one of them each, and so is a quarter of the experts.
TEST(ExpertBiases, AreAddedExpertByExpert) {
  const ModelGraph plain = Llama(/*experts=*/8), biases = WithExpertBiases(Llama(8));
  const int64_t rows = kLlamaTokens * 2 * kLlamaHidden;
  for (const int64_t devices : {1, 4}) {
    TensorParallel split;
    split.experts = devices;
    EXPECT_EQ(More(biases, plain, "gpt_experts", &LayerOperations::forward, split), 14 * rows);
    EXPECT_EQ(More(biases, plain, "gpt_experts", &LayerOperations::backward_input, split),
              20 * rows);
    EXPECT_EQ(ShareOfKind(biases, "gpt_experts", split).operations.forward.size() -
                  ShareOfKind(plain, "gpt_experts", split).operations.forward.size(),
              2 * 8 / devices + 2);
  }
}

int64_t CallsOf(const std::vector<Operation>& pass) {
  int64_t calls = 0;
  for (const Operation& o : pass) calls += o.own ? 0 : o.calls;
  return calls;
}

int64_t CallsOf(const ModelGraph& graph, const char* kind) {
  const LayerOperations ops = ShareOfKind(graph, kind).operations;
  return CallsOf(ops.forward) + CallsOf(ops.backward_input) + CallsOf(ops.backward_weight);
}

constexpr int64_t kLlamaExperts = 8, kLlamaRows = 2 * kLlamaTokens;  // two experts a token

// Choice, softmax and eight kernels of maps are one; backward four are one.
TEST(LaunchedKernels, AFusedRouterIsOneKernelAPass) {
  LaunchedKernels fused;
  fused.fused_routers = true;
  const ModelGraph plain = Llama(kLlamaExperts),
                   with = WithLaunchedKernels(Llama(kLlamaExperts), fused);
  const auto calls = [](const ModelGraph& graph, std::vector<Operation> LayerOperations::*pass) {
    return CallsOf(ShareOfKind(graph, "gpt_experts").operations.*pass);
  };
  EXPECT_EQ(calls(plain, &LayerOperations::forward) - calls(with, &LayerOperations::forward), 9);
  EXPECT_EQ(calls(plain, &LayerOperations::backward_input) -
                calls(with, &LayerOperations::backward_input),
            3);
  EXPECT_LT(More(with, plain, "gpt_experts", &LayerOperations::forward), 0);
}

// The gate reads two rows of the inner width and writes one, and what it writes is cast; backward
// it reads three and writes two, which are cast.
TEST(LaunchedKernels, FusedExpertsHaveNeitherGatesNorCastsBehindThem) {
  LaunchedKernels fused;
  fused.fused_experts = true;
  const ModelGraph plain = WithFp8Casts(Llama(kLlamaExperts));
  const ModelGraph with = WithLaunchedKernels(WithFp8Casts(Llama(kLlamaExperts)), fused);
  EXPECT_EQ(More(with, plain, "gpt_experts", &LayerOperations::forward),
            -kLlamaRows * kLlamaInner * (3 + 2));
  EXPECT_EQ(More(with, plain, "gpt_experts", &LayerOperations::backward_input),
            -kLlamaRows * kLlamaInner * (5 + 2 * 2));
  EXPECT_EQ(More(with, plain, "gpt_experts", &LayerOperations::backward_weight), 0);
}

// Each expert's weight is taken up by itself, and has a gradient of its own.
TEST(LaunchedKernels, ProductsOfExpertsAreCalledOneByOne) {
  int64_t products = 0, calls = 0;
  for (const Operation& o : ShareOfKind(Llama(kLlamaExperts), "gpt_experts").operations.forward) {
    if (o.groups == 1) continue;
    ++products;
    calls += o.calls;
  }
  EXPECT_EQ(products, 2);
  EXPECT_EQ(calls, 2 * kLlamaExperts);
}

// Norm and both products; of the backward the gradients of their inputs, and of the weights.
TEST(LaunchedKernels, OutputsAreFilled) {
  LaunchedKernels kernels;
  kernels.filled_outputs = true;
  const ModelGraph plain = Llama(), filled = WithLaunchedKernels(Llama(), kernels);
  const int64_t narrow = kLlamaTokens * kLlamaHidden, wide = kLlamaTokens * kLlamaInner;
  EXPECT_EQ(More(filled, plain, "gpt_mlp", &LayerOperations::forward), 2 * narrow + 2 * wide);
  EXPECT_EQ(More(filled, plain, "gpt_mlp", &LayerOperations::backward_input), 2 * narrow + wide);
  EXPECT_EQ(More(filled, plain, "gpt_mlp", &LayerOperations::backward_weight),
            3 * kLlamaHidden * kLlamaInner);
}

TEST(LaunchedKernels, GraphsLaunchTheirModules) {
  const auto calls = [](bool LaunchedKernels::*module, const char* kind) {
    LaunchedKernels kernels;
    kernels.*module = true;
    return CallsOf(WithLaunchedKernels(Llama(kLlamaExperts), kernels), kind);
  };
  const int64_t attention = CallsOf(Llama(kLlamaExperts), "gpt_attention");
  const int64_t experts = CallsOf(Llama(kLlamaExperts), "gpt_experts");
  const int64_t head = CallsOf(Llama(kLlamaExperts), "gpt_head");
  EXPECT_EQ(calls(&LaunchedKernels::graphed_attention, "gpt_attention"), 0);
  EXPECT_EQ(calls(&LaunchedKernels::graphed_attention, "gpt_experts"), experts);
  EXPECT_EQ(calls(&LaunchedKernels::graphed_routers, "gpt_attention"), attention);
  EXPECT_LT(calls(&LaunchedKernels::graphed_routers, "gpt_experts"), experts);
  EXPECT_GE(calls(&LaunchedKernels::graphed_routers, "gpt_experts"), 4 * kLlamaExperts);
  EXPECT_EQ(calls(&LaunchedKernels::graphed_experts, "gpt_experts"), 0);
  EXPECT_EQ(calls(&LaunchedKernels::graphed_experts, "gpt_head"), head);
  EXPECT_EQ(calls(&LaunchedKernels::graphed_step, "gpt_head"), 0);
  LaunchedKernels feed_forward;
  feed_forward.graphed_feed_forward = true;
  EXPECT_EQ(CallsOf(WithLaunchedKernels(Llama(), feed_forward), "gpt_mlp"), 0);
}

}  // namespace
}  // namespace pipelab
