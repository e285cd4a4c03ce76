#include "models/specs/megatron_kernels.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "models/graph/attention_workspace.h"
#include "models/specs/unfused_attention_spec.h"
#include "models/specs/vocabulary_parts.h"
#include "models/zoo/gpt.h"
#include "models/zoo/vocabulary_shards.h"
#include "tools/base/status_matchers.h"

namespace pipelab {
namespace {

constexpr int64_t kLayers = 2, kGptHidden = 64, kGptHeads = 8, kGptTokens = 32, kGptWords = 96;

ModelGraph Gpt() {
  GptConfig c;
  c.layers = kLayers;
  c.hidden = kGptHidden;
  c.heads = kGptHeads;
  c.tokens = kGptTokens;
  c.vocabulary = kGptWords;
  c.tied_embeddings = true;
  return BuildGpt(c).value();
}

Flops FlopsOfAll(const std::vector<Operation>& operations) {
  Flops flops;
  for (const Operation& o : operations) flops += o.flops;
  return flops;
}

int64_t NumbersIn(const std::vector<Operation>& operations) {
  int64_t numbers = 0;
  for (const Operation& o : operations) numbers += o.own ? 0 : o.numbers;
  return numbers;
}

// Only the kernels around the products are others.
TEST(MegatronKernels, ComputeTheProductsOfTheModel) {
  const ModelGraph plain = WithUnfusedAttention(Gpt()), megatron = WithMegatronKernels(Gpt());
  ASSERT_EQ(plain.layers.size(), megatron.layers.size());
  for (const int64_t degree : {1, 2, 4, 8}) {
    for (const int64_t samples : {1, 3}) {
      for (size_t i = 0; i < plain.layers.size(); ++i) {
        SCOPED_TRACE(plain.layers[i].name);
        const TensorParallel split = {degree, false};
        const TensorShare a = ShareOf(plain.layers[i], samples, TokenSlice(), split);
        const TensorShare b = ShareOf(megatron.layers[i], samples, TokenSlice(), split);
        EXPECT_EQ(FlopsOfAll(a.operations.forward), FlopsOfAll(b.operations.forward));
        EXPECT_EQ(FlopsOfAll(a.operations.backward_input), FlopsOfAll(b.operations.backward_input));
        EXPECT_EQ(FlopsOfAll(a.operations.backward_weight),
                  FlopsOfAll(b.operations.backward_weight));
        EXPECT_EQ(a.costs.kept, b.costs.kept);
        EXPECT_EQ(a.forward.size(), b.forward.size());
        EXPECT_GE(b.operations.forward.size(), a.operations.forward.size());
        EXPECT_GT(NumbersIn(b.operations.backward_weight), NumbersIn(a.operations.backward_weight));
      }
    }
  }
}

// The same for Llama's blocks: keys that heads share, gates, no biases or those of q, k and v
// alone.
TEST(MegatronKernels, ComputeTheProductsOfLlama) {
  for (const Biases biases : {Biases::kNone, Biases::kQueryKeyValue}) {
    GptConfig c =
        LlamaConfig(kLayers, kGptHidden, kGptHeads, /*feed_forward=*/48, kGptTokens, kGptWords);
    c.kv_heads = 2;
    c.biases = biases;
    const ModelGraph plain = BuildGpt(c).value();
    const ModelGraph megatron = WithMegatronKernels(plain, AttentionImplementation::kFused);
    for (const int64_t degree : {1, 2}) {
      for (size_t i = 0; i < plain.layers.size(); ++i) {
        SCOPED_TRACE(plain.layers[i].name);
        const TensorParallel split = {degree, false};
        const LayerOperations a = ShareOf(plain.layers[i], 3, TokenSlice(), split).operations;
        const LayerOperations b = ShareOf(megatron.layers[i], 3, TokenSlice(), split).operations;
        EXPECT_EQ(FlopsOfAll(a.forward), FlopsOfAll(b.forward));
        EXPECT_EQ(FlopsOfAll(a.backward_input), FlopsOfAll(b.backward_input));
        EXPECT_EQ(FlopsOfAll(a.backward_weight), FlopsOfAll(b.backward_weight));
      }
    }
    // Norm, q k v, rotation, attention, projection, residual; norm, gate and value, their product,
    // projection, residual.
    EXPECT_EQ(megatron.layers[1].operations(1, TokenSlice()).forward.size(), 6);
    EXPECT_EQ(megatron.layers[2].operations(1, TokenSlice()).forward.size(), 5);
  }
}

// The same for latent attention.
TEST(MegatronKernels, ComputeTheProductsOfLatentAttention) {
  for (const int64_t query_rank : {0, 24}) {
    GptConfig c =
        LlamaConfig(kLayers, kGptHidden, kGptHeads, /*feed_forward=*/48, kGptTokens, kGptWords);
    c.latent = {query_rank, /*rank=*/16, /*nope_size=*/8, /*rope_size=*/4, /*value_size=*/6};
    const LayerSpec plain = BuildGpt(c)->layers[1];
    const LayerSpec megatron =
        WithMegatronKernels(*BuildGpt(c), AttentionImplementation::kFused).layers[1];
    for (const TensorParallel& split :
         {TensorParallel{1, false}, TensorParallel{2, false}, TensorParallel{4, true}}) {
      const TensorShare a = ShareOf(plain, 3, TokenSlice(), split);
      const LayerOperations b = ShareOf(megatron, 3, TokenSlice(), split).operations;
      EXPECT_EQ(FlopsOfAll(a.operations.forward), FlopsOfAll(b.forward));
      EXPECT_EQ(FlopsOfAll(a.operations.backward_input), FlopsOfAll(b.backward_input));
      EXPECT_EQ(FlopsOfAll(a.operations.backward_weight), FlopsOfAll(b.backward_weight));
      EXPECT_EQ(FlopsOfAll(b.forward), a.costs.forward);
      EXPECT_EQ(FlopsOfAll(b.backward_input), a.costs.backward_input);
      EXPECT_EQ(FlopsOfAll(b.backward_weight), a.costs.backward_weight);
    }
    // Norm, narrow products with norms, wide ones, rotation, keys and values, attention,
    // projection, residual.
    EXPECT_EQ(megatron.operations(1, TokenSlice()).forward.size(), query_rank > 0 ? 12 : 10);
  }
}

// Fused kernels skip what a window hides; unfused ones compute all pairs.
TEST(MegatronKernels, WindowsCountWhereFused) {
  GptConfig c =
      LlamaConfig(kLayers, kGptHidden, kGptHeads, /*feed_forward=*/48, /*tokens=*/512, kGptWords);
  c.windows = {64, 0};
  const auto flops = [&](AttentionImplementation kernels, int layer) {
    const ModelGraph graph = WithMegatronKernels(*BuildGpt(c), kernels);
    return FlopsOfAll(graph.layers[layer].operations(1, TokenSlice()).forward).value();
  };
  constexpr int kWindow = 1, kAll = 3;  // blocks' attention
  const double linear = MatmulFlops(512, 4 * kGptHidden, kGptHidden).value();
  // Eight blocks of 64 rows: the first sees 64 keys, each other one 127.
  EXPECT_EQ(flops(AttentionImplementation::kFused, kWindow) - linear,
            2 * MatmulFlops(64, 64 + 7 * 127, kGptHidden).value());
  EXPECT_EQ(flops(AttentionImplementation::kFused, kAll) - linear,
            2 * MatmulFlops(64, 64 * 36, kGptHidden).value());
  EXPECT_EQ(flops(AttentionImplementation::kUnfused, kWindow),
            flops(AttentionImplementation::kUnfused, kAll));
}

// By hand, from the names of the kernels in a profile of a block.
TEST(MegatronKernels, LaunchesOfABlock) {
  const ModelGraph graph = WithMegatronKernels(Gpt());
  const LayerOperations attention = graph.layers[1].operations(1, TokenSlice());
  // Norm, q k v, scores, softmax, dropout, context, its copy, projection, residual.
  EXPECT_EQ(attention.forward.size(), 9);
  EXPECT_EQ(attention.backward_input.size(), 13);
  // Two products, two biases, the norm, and six parameters' sums.
  EXPECT_EQ(attention.backward_weight.size(), 11);
  const LayerOperations mlp = graph.layers[2].operations(1, TokenSlice());
  EXPECT_EQ(mlp.forward.size(), 5);
  EXPECT_EQ(mlp.backward_input.size(), 6);
  EXPECT_EQ(mlp.backward_weight.size(), 11);
}

TEST(MegatronKernels, NumbersOfTheAttentionsForward) {
  constexpr int64_t kSamples = 3, kDegree = 2;
  const ModelGraph graph = WithMegatronKernels(Gpt());
  const TensorShare share = ShareOf(graph.layers[1], kSamples, TokenSlice(), {kDegree, false});
  const int64_t m = kSamples * kGptTokens, c = kGptHidden, w = c / kDegree;
  const int64_t pairs = kSamples * (kGptHeads / kDegree) * kGptTokens * kGptTokens;
  const std::vector<int64_t> expected = {
      2 * m * c,                      // norm
      m * c + c * 3 * w + m * 3 * w,  // q, k, v
      pairs + 2 * m * w,              // scores
      pairs * 3 / 2,                  // softmax of the causal half
      pairs * 5 / 2,                  // dropout
      pairs + 2 * m * w,              // context
      2 * m * w,                      // its copy
      m * w + w * c + m * c,          // projection
      m * c * 7 / 2,                  // bias, dropout, residual
  };
  // In any order: norm and products are added by what they have in common.
  std::vector<int64_t> numbers;
  for (const Operation& o : share.operations.forward) numbers.push_back(o.numbers);
  std::vector<int64_t> sorted = expected;
  std::sort(sorted.begin(), sorted.end());
  std::sort(numbers.begin(), numbers.end());
  EXPECT_EQ(numbers, sorted);
}

// Whole layers have the same operations as in a group of one.
TEST(MegatronKernels, OperationsAreThoseOfADegreeOfOne) {
  for (const LayerSpec& layer : WithMegatronKernels(Gpt()).layers) {
    const LayerOperations whole = layer.operations(2, TokenSlice());
    const LayerOperations one = ShareOf(layer, 2, TokenSlice(), {1, false}).operations;
    EXPECT_EQ(NumbersIn(whole.forward), NumbersIn(one.forward));
    EXPECT_EQ(NumbersIn(whole.backward_weight), NumbersIn(one.backward_weight));
    EXPECT_EQ(layer.slice_costs == nullptr, layer.kind == kUnfusedAttention);
  }
}

// Products and pairs of a causal mask add up; each slice reads the weights, and sums the gradients
// of all parameters, once more.
TEST(MegatronKernels, SlicesAddUp) {
  GptConfig c;
  c.layers = 1;
  c.hidden = kGptHidden;
  c.heads = kGptHeads;
  c.tokens = 8 * kAttentionQueryRows;
  c.vocabulary = kGptWords;
  const ModelGraph graph =
      WithMegatronKernels(BuildGpt(c).value(), AttentionImplementation::kFused);
  ASSERT_TRUE(CheckTakesSlices(graph).ok());
  const std::vector<TokenSlice> slices = {{0, 4 * kAttentionQueryRows},
                                          {4 * kAttentionQueryRows, 3 * kAttentionQueryRows},
                                          {7 * kAttentionQueryRows, kAttentionQueryRows}};
  const auto more = static_cast<int64_t>(slices.size()) - 1;
  for (const TensorParallel split : {TensorParallel{1, false}, TensorParallel{4, true}}) {
    for (const LayerSpec& layer : graph.layers) {
      SCOPED_TRACE(layer.name);
      const LayerOperations whole = ShareOf(layer, 3, TokenSlice(), split).operations;
      Flops flops;
      int64_t forward = 0, weight = 0;
      for (const TokenSlice& slice : slices) {
        const LayerOperations ops = ShareOf(layer, 3, slice, split).operations;
        for (const auto* pass : {&ops.forward, &ops.backward_input, &ops.backward_weight}) {
          flops += FlopsOfAll(*pass);
        }
        forward += NumbersIn(ops.forward);
        weight += NumbersIn(ops.backward_weight);
      }
      EXPECT_EQ(flops, FlopsOfAll(whole.forward) + FlopsOfAll(whole.backward_input) +
                           FlopsOfAll(whole.backward_weight));
      const LayerOperations one = ShareOf(layer, 3, {0, c.tokens}, split).operations;
      for (const auto& [a, b] : {std::make_pair(&one.forward, &whole.forward),
                                 std::make_pair(&one.backward_input, &whole.backward_input),
                                 std::make_pair(&one.backward_weight, &whole.backward_weight)}) {
        EXPECT_EQ(a->size(), b->size());
        EXPECT_EQ(FlopsOfAll(*a), FlopsOfAll(*b));
        EXPECT_EQ(NumbersIn(*a), NumbersIn(*b));
      }
      if (layer.kind != "gpt_mlp") continue;
      const int64_t matrices = 2 * kGptHidden * 4 * kGptHidden / split.degree;
      int64_t parameters = 0;
      for (const ParameterSpec& p : layer.parameters) parameters += p.size_on(split);
      EXPECT_EQ(forward, NumbersIn(whole.forward) + more * matrices);
      EXPECT_EQ(weight, NumbersIn(whole.backward_weight) + more * (matrices + 3 * parameters));
    }
  }
}

// The second slice and the last one have 4 and 7 rows of keys before 3 and 1, and k and v of each.
TEST(MegatronKernels, SlicesCopyTheKeysBeforeThem) {
  GptConfig c;
  c.layers = 1;
  c.hidden = kGptHidden;
  c.heads = kGptHeads;
  c.tokens = 8 * kAttentionQueryRows;
  c.vocabulary = kGptWords;
  const LayerSpec layer =
      WithMegatronKernels(BuildGpt(c).value(), AttentionImplementation::kFused).layers[1];
  const int64_t row = 2 * kGptHidden;
  const auto elementwise = [&](TokenSlice slice, bool forward) {
    const LayerOperations ops = ShareOf(layer, 1, slice, {}).operations;
    int64_t numbers = 0;
    for (const Operation& o : forward ? ops.forward : ops.backward_input) {
      if (o.kind == OperationKind::kElementwise && !o.own) numbers += o.numbers;
    }
    return numbers;
  };
  for (const auto& [first, count] : {std::make_pair(0, 4), std::make_pair(4, 3), {7, 1}}) {
    const TokenSlice slice = {first * kAttentionQueryRows, count * kAttentionQueryRows};
    const auto share = [&](bool forward) {
      return elementwise({}, forward) / c.tokens * slice.count;
    };
    EXPECT_EQ(elementwise(slice, true) - share(true), first == 0 ? 0 : 2 * row * slice.end());
    EXPECT_EQ(elementwise(slice, false) - share(false), first == 7 ? 0 : 3 * row * slice.end());
  }
}

int64_t LossNumbers(const std::vector<Operation>& operations) {
  int64_t numbers = 0;
  for (const Operation& o : operations) numbers += o.kind == OperationKind::kLoss ? o.numbers : 0;
  return numbers;
}

// In half precision's numbers: to single 1 + 2, the largest 2, without it 4, exponentials 4, their
// sum 2, the softmax 4; its gradient 4, and to half 3.
TEST(MegatronKernels, UnfusedLossPassesOverTheLogitsLineByLine) {
  constexpr int64_t kLogits = kGptTokens * kGptWords;
  const auto head = [](LossImplementation loss) {
    const ModelGraph g = WithMegatronKernels(Gpt(), AttentionImplementation::kFused, loss);
    EXPECT_EQ(LossImplementationOf(g), loss);
    return g.layers.back().operations(1, TokenSlice());
  };
  const LayerOperations fused = head(LossImplementation::kFused),
                        lines = head(LossImplementation::kUnfused),
                        in_place = head(LossImplementation::kTransformerEngine);
  EXPECT_EQ(LossNumbers(in_place.forward), 3 * kLogits);
  EXPECT_EQ(LossNumbers(in_place.backward_input), 2 * kLogits);
  EXPECT_EQ(LossNumbers(fused.forward), 5 * kLogits);
  EXPECT_EQ(LossNumbers(fused.backward_input), 3 * kLogits);
  EXPECT_EQ(LossNumbers(lines.forward), 19 * kLogits);
  EXPECT_EQ(LossNumbers(lines.backward_input), 7 * kLogits);
  EXPECT_EQ(LossImplementationOf(Gpt()), absl::nullopt);
}

// Parts of a vocabulary together do the head's products and forward; then each scales its softmax,
// and, with one barrier, gives the input's gradient with its forward.
TEST(MegatronKernels, VocabularyPartsAreTheHeadTogether) {
  const ModelGraph whole =
      WithMegatronKernels(Gpt(), AttentionImplementation::kFused, LossImplementation::kUnfused);
  const LayerOperations head = whole.layers.back().operations(1, TokenSlice());
  for (const int barriers : {1, 2}) {
    PIPELAB_ASSERT_OK_AND_ASSIGN(const ShardedVocabulary v, ShardVocabulary(whole, 4, barriers));
    const ModelGraph parts = WithMegatronVocabularyParts(v.graph, LossImplementation::kUnfused);
    LayerOperations sum;
    for (size_t i = 0; i < parts.layers.size(); ++i) {
      const LayerSpec& layer = parts.layers[i];
      if (layer.kind != kVocabularyShard) continue;
      EXPECT_GT(layer.costs(1).kept, v.graph.layers[i].costs(1).kept);
      const LayerOperations part = layer.operations(1, TokenSlice());
      sum.forward.insert(sum.forward.end(), part.forward.begin(), part.forward.end());
      for (const auto* pass : {&part.backward_input, &part.backward_weight}) {
        sum.backward_weight.insert(sum.backward_weight.end(), pass->begin(), pass->end());
      }
    }
    const Flops product = FlopsOfAll(head.forward);
    EXPECT_EQ(FlopsOfAll(sum.forward), barriers == 1 ? product + product : product);
    EXPECT_EQ(FlopsOfAll(sum.forward) + FlopsOfAll(sum.backward_weight),
              product + product + product);
    const int64_t logits = kGptTokens * kGptWords;
    EXPECT_EQ(LossNumbers(sum.forward), (barriers == 1 ? 22 : 19) * logits);
    EXPECT_EQ(LossNumbers(sum.backward_weight), 11 * logits);
  }
}

}  // namespace
}  // namespace pipelab
