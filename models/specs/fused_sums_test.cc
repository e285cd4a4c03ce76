#include "models/specs/fused_sums.h"

#include <cstdint>
#include <map>
#include <set>

#include "gtest/gtest.h"
#include "models/graph/tensor_parallel.h"
#include "models/specs/megatron_kernels.h"
#include "models/zoo/gpt.h"

namespace pipelab {
namespace {

constexpr int64_t kTokensOfAll = 32, kWidth = 64, kFeedForward = 128, kWordsOfAll = 96;

// By buffer, the elements of one product on a device.
std::map<int, std::set<int64_t>> BuffersOf(const GptConfig& config, const TensorParallel& split) {
  std::map<int, std::set<int64_t>> buffers;
  for (const LayerSpec& layer : WithFusedSums(*BuildGpt(config)).layers) {
    for (const ParameterSpec& p : layer.parameters) {
      if (p.gradient_buffer >= 0) buffers[p.gradient_buffer].insert(p.product_on(split));
    }
  }
  return buffers;
}

GptConfig BufferedLlama() {
  return LlamaConfig(/*layers=*/3, kWidth, /*heads=*/4, kFeedForward, kTokensOfAll, kWordsOfAll);
}

// Queries, keys and values; their projection; both products of the feed-forward: four buffers,
// however many blocks there are. Embedding and head have none.
TEST(GradientBuffers, AreOneAShape) {
  for (const int64_t t : {1, 2, 4}) {
    const auto buffers = BuffersOf(BufferedLlama(), {/*degree=*/t});
    std::set<int64_t> sizes;
    for (const auto& [buffer, of_buffer] : buffers) {
      EXPECT_EQ(of_buffer.size(), 1) << buffer;
      sizes.insert(of_buffer.begin(), of_buffer.end());
    }
    EXPECT_EQ(buffers.size(), 4);
    EXPECT_EQ(sizes, (std::set<int64_t>{3 * kWidth * kWidth / t, kWidth * kWidth / t,
                                        2 * kWidth * kFeedForward / t, kWidth * kFeedForward / t}));
  }
}

// No kernel adds up gradients of products' weights; each product does.
TEST(FusedSums, AreTheProducts) {
  GptConfig config = BufferedLlama();
  config.experts.experts = 8;
  config.experts.chosen = 2;
  for (const GptConfig& c : {BufferedLlama(), config}) {
    const ModelGraph plain = WithMegatronKernels(*BuildGpt(c), AttentionImplementation::kFused);
    const ModelGraph fused = WithFusedSums(plain);
    int64_t sums = 0, products = 0;
    for (size_t i = 0; i < plain.layers.size(); ++i) {
      if (!plain.layers[i].operations) continue;
      for (const Operation& o : plain.layers[i].operations(1, {}).backward_weight) {
        sums += o.of_product;
        EXPECT_NE(o.sums, GradientSums::kProduct);
      }
      for (const Operation& o : fused.layers[i].operations(1, {}).backward_weight) {
        products += o.sums_rows && o.sums == GradientSums::kProduct;
        EXPECT_FALSE(o.of_product) << plain.layers[i].name;
      }
    }
    EXPECT_GE(sums, 10);
    EXPECT_GE(products, sums);
  }
}

// All experts of a device have one buffer for each of their two weights, and a shared expert as
// wide as a routed one has the same. The router has none.
TEST(GradientBuffers, AreThoseOfOneExpert) {
  GptConfig config = BufferedLlama();
  config.experts.experts = 8;
  config.experts.chosen = 2;
  for (const int64_t shared : {0, 1, 2}) {
    config.experts.shared = shared;
    for (const int64_t e : {1, 2, 8}) {
      TensorParallel split;
      split.experts = e;
      const auto buffers = BuffersOf(config, split);
      EXPECT_EQ(buffers.size(), shared == 2 ? 6 : 4);
      int64_t sum = 0;
      for (const auto& [buffer, of_buffer] : buffers) {
        for (const int64_t size : of_buffer) sum += size;
      }
      const int64_t more = shared == 2 ? 2 * 3 * kWidth * kFeedForward : 0;
      EXPECT_EQ(sum, 4 * kWidth * kWidth + 3 * kWidth * kFeedForward + more) << e;
    }
  }
}

}  // namespace
}  // namespace pipelab
