#include "models/specs/composer_kernels.h"

#include <cstdint>
#include <vector>

#include "gtest/gtest.h"
#include "models/specs/megatron_kernels.h"
#include "models/zoo/gpt.h"

namespace pipelab {
namespace {

constexpr int64_t kMptTokens = 32, kMptHidden = 64, kMptWords = 96;

ModelGraph Mpt() {
  GptConfig c;
  c.layers = 1;
  c.hidden = kMptHidden;
  c.heads = 4;
  c.tokens = kMptTokens;
  c.vocabulary = kMptWords;
  return WithMegatronKernels(BuildGpt(c).value(), AttentionImplementation::kFused);
}

TensorShare WholeOf(const ModelGraph& graph, const char* kind) {
  for (const LayerSpec& layer : graph.layers) {
    if (layer.kind == kind) return ShareOf(layer, /*samples=*/1, TokenSlice(), TensorParallel());
  }
  ADD_FAILURE() << kind;
  return {};
}

int64_t Numbers(const std::vector<Operation>& pass) {
  int64_t numbers = 0;
  for (const Operation& o : pass) numbers += o.own ? 0 : o.numbers;
  return numbers;
}

// The mask of the branch's end forward; dropout's kernel backward.
TEST(ComposerKernels, NoDropout) {
  const int64_t rows = kMptTokens * kMptHidden;
  for (const char* kind : {"gpt_attention", "gpt_mlp"}) {
    const LayerOperations plain = WholeOf(Mpt(), kind).operations,
                          ours = WholeOf(WithComposerKernels(Mpt()), kind).operations;
    EXPECT_EQ(Numbers(plain.forward) - Numbers(ours.forward), rows / 2) << kind;
    EXPECT_EQ(ours.forward.size(), plain.forward.size()) << kind;
    EXPECT_EQ(Numbers(plain.backward_input) - Numbers(ours.backward_input), rows * 5 / 2) << kind;
    int64_t weights = 0;  // copied, and not added up
    for (const Operation& o : plain.backward_weight) weights += o.of_product ? o.numbers / 3 : 0;
    EXPECT_GT(weights, kMptHidden * kMptHidden);
    EXPECT_EQ(Numbers(plain.backward_weight) - Numbers(ours.backward_weight), weights) << kind;
  }
}

// Loss: 1 and 2 passes over the logits for 5 and 3; two metrics: a cast and a log-softmax each.
TEST(ComposerKernels, LossAndMetrics) {
  const int64_t logits = kMptTokens * kMptWords;
  const TensorShare plain = WholeOf(Mpt(), "gpt_head"),
                    ours = WholeOf(WithComposerKernels(Mpt()), "gpt_head");
  EXPECT_EQ(Numbers(ours.operations.forward) - Numbers(plain.operations.forward), (1 - 5) * logits);
  EXPECT_EQ(Numbers(ours.operations.backward_input) - Numbers(plain.operations.backward_input),
            (2 + 2 * (3 + 4) - 3) * logits);
  EXPECT_LT(ours.costs.kept, plain.costs.kept);
}

}  // namespace
}  // namespace pipelab
