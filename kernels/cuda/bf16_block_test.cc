// The block in bfloat16, on the emulated device, against the same formulas on the reference.
#include "kernels/cuda/bf16_block.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "kernels/backend.h"
#include "kernels/reference/reference_backend.h"
#include "kernels/tensor/host_values.h"

namespace pipelab {
namespace gpu {
namespace {

class Wide {
 public:
  Wide(Bf16Block* block, const BlockSize& size) : block_(block), size_(size) {}

  // The block's values, widened.
  Tensor Of(const std::string& name, Shape shape) {
    const Tensor t = backend_->Allocate(std::move(shape));
    SetHostValues(t, block_->Value(name));
    return t;
  }
  Tensor New(Shape shape) {
    const Tensor t = backend_->Allocate(std::move(shape));
    backend_->Fill(t, 0);
    return t;
  }

  std::map<std::string, std::vector<float>> Run() {
    Backend& b = *backend_;
    const int64_t m = size_.rows(), c = size_.hidden, f = size_.inner();
    const Tensor x = Of("x", {m, c}), dy = Of("dy", {m, c});
    const Tensor wqkv = Of("wqkv", {c, 3 * c}), wo = Of("wo", {c, c});
    const Tensor w1 = Of("w1", {c, f}), w2 = Of("w2", {f, c});
    const Tensor gamma1 = Of("gamma1", {c}), gamma2 = Of("gamma2", {c});
    AttentionShape shape;
    shape.samples = size_.samples;
    shape.tokens = size_.tokens;
    shape.heads = size_.heads;
    shape.head_size = size_.head_size();
    const Tensor norm1 = New({m, c}), norm2 = New({m, c}), qkv = New({m, 3 * c});
    const Tensor mean1 = New({m}), rstd1 = New({m}), mean2 = New({m}), rstd2 = New({m});
    const Tensor mix = New({m, c}), lse = New({size_.samples, size_.heads, size_.tokens});
    const Tensor middle = New({m, c}), h = New({m, f}), gelu = New({m, f}), y = New({m, c});
    b.LayerNorm(x, gamma1, Of("beta1", {c}), norm1, mean1, rstd1);
    b.Linear(norm1, wqkv, Of("bqkv", {3 * c}), qkv);
    b.attention().Forward(shape, qkv, mix, lse);
    b.Linear(mix, wo, Of("bo", {c}), middle);
    b.Add(middle, x, middle);
    b.LayerNorm(middle, gamma2, Of("beta2", {c}), norm2, mean2, rstd2);
    b.LinearGelu(norm2, w1, Of("b1", {f}), h, gelu);
    b.Linear(gelu, w2, Of("b2", {c}), y);
    b.Add(y, middle, y);
    std::map<std::string, std::vector<float>> all = {{"y", HostValues(y)}};

    const Tensor dh = New({m, f}), dnorm = New({m, c}), dmiddle = New({m, c});
    const Tensor dw1 = New({c, f}), dw2 = New({f, c}), db1 = New({f}), db2 = New({c});
    b.LinearGeluInputGradient(dy, w2, h, dh);
    b.LinearWeightGradient(gelu, dy, dw2, db2);
    b.LinearInputGradient(dh, w1, dnorm);
    b.LinearWeightGradient(norm2, dh, dw1, db1);
    const Tensor dgamma2 = New({c}), dbeta2 = New({c});
    b.LayerNormWeightGradient(dnorm, middle, mean2, rstd2, dgamma2, dbeta2);
    b.LayerNormInputGradient(dnorm, middle, gamma2, mean2, rstd2, dmiddle);
    b.Add(dmiddle, dy, dmiddle);
    const Tensor dmix = New({m, c}), dqkv = New({m, 3 * c}), dx = New({m, c});
    const Tensor dwo = New({c, c}), dbo = New({c}), dwqkv = New({c, 3 * c}), dbqkv = New({3 * c});
    b.LinearInputGradient(dmiddle, wo, dmix);
    b.LinearWeightGradient(mix, dmiddle, dwo, dbo);
    b.attention().Gradient(shape, dmix, qkv, mix, lse, dqkv);
    b.LinearInputGradient(dqkv, wqkv, dnorm);
    b.LinearWeightGradient(norm1, dqkv, dwqkv, dbqkv);
    b.LayerNormInputGradient(dnorm, x, gamma1, mean1, rstd1, dx);
    b.Add(dx, dmiddle, dx);
    const std::pair<const char*, Tensor> gradients[] = {
        {"dx", dx},   {"dw1", dw1},         {"dw2", dw2},       {"db1", db1},
        {"db2", db2}, {"dgamma2", dgamma2}, {"dbeta2", dbeta2}, {"dwo", dwo},
        {"dbo", dbo}, {"dwqkv", dwqkv},     {"dbqkv", dbqkv}};
    for (const auto& [name, t] : gradients) {
      all[name] = HostValues(t);
    }
    return all;
  }

 private:
  Bf16Block* const block_;
  const BlockSize size_;
  Arena arena_;
  const std::unique_ptr<Backend> backend_ = MakeReferenceBackend(&arena_);
};

// A number keeps 8 bits, and a result has some tens of roundings behind it: off by a few hundredths
// of the largest at most, and by one on average.
class Bf16BlockTest : public testing::TestWithParam<BlockAttention> {};

TEST_P(Bf16BlockTest, ComputesTheBlock) {
  BlockSize size;
  size.samples = 2;
  size.tokens = 9;
  size.hidden = 24;
  size.heads = 3;
  const auto device = MakeEmulatedDevice();
  Bf16Block block(size, GetParam(), device);
  block.Forward();
  block.Backward();
  ASSERT_TRUE(device->Finish().ok());
  for (const auto& [name, want] : Wide(&block, size).Run()) {
    const std::vector<float> got = block.Value(name);
    ASSERT_EQ(got.size(), want.size()) << name;
    double most = 0, off = 0, sum = 0;
    for (size_t i = 0; i < want.size(); ++i) {
      most = std::max(most, std::abs(double{want[i]}));
      off = std::max(off, std::abs(double{got[i]} - want[i]));
      sum += std::abs(double{got[i]} - want[i]);
    }
    EXPECT_LT(off, 0.04 * most) << name;
    EXPECT_LT(sum / static_cast<double>(want.size()), 0.01 * most) << name;
  }
  block.Backward();  // gradients of weights add up
  const std::vector<float> twice = block.Value("dw1");
  const std::vector<float> once = Wide(&block, size).Run()["dw1"];
  EXPECT_NEAR(twice[5], 2 * once[5], 0.1 * std::abs(once[5]) + 0.05);
}
INSTANTIATE_TEST_SUITE_P(Attentions, Bf16BlockTest,
                         testing::Values(BlockAttention::kBackend, BlockAttention::kProducts));

}  // namespace
}  // namespace gpu
}  // namespace pipelab
