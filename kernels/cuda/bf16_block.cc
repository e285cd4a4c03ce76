#include "kernels/cuda/bf16_block.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "glog/logging.h"
#include "kernels/cuda/cuda_backend.h"
#include "kernels/cuda/functions.h"
#include "kernels/tensor/host_values.h"
#include "tools/base/rng.h"

namespace pipelab {
namespace gpu {
namespace {

BFloat16* Half(const Tensor& x) { return static_cast<BFloat16*>(x.data()); }
float* Float(const Tensor& x) { return static_cast<float*>(x.data()); }

AttentionShape ShapeOf(const BlockSize& size) {
  return {size.samples, size.tokens, size.heads, size.head_size(), /*causal=*/true};
}

}  // namespace

Tensor Bf16Block::New(DataType type, Shape shape) {
  return arena_.Allocate(type, std::move(shape), MemoryKind::kActivation);
}

// Draws a million numbers, repeated: what they are makes no difference to speed, and drawing takes
// long.
Tensor Bf16Block::Drawn(const std::string& name, Shape shape, float spread, uint64_t seed) {
  Tensor half = New(DataType::kBFloat16, std::move(shape));
  const Tensor flat = half.Reshape({half.size()});
  const int64_t distinct = std::min(half.size(), int64_t{1} << 20);
  FillOnHost<float>(flat.Rows(0, distinct), [&](absl::Span<float> all) {
    const CounterRng rng(seed, name);
    for (size_t i = 0; i < all.size(); ++i) all[i] = spread * rng.Normal(i);
  });
  for (int64_t at = distinct; at < half.size(); at += distinct) {
    const int64_t count = std::min(distinct, half.size() - at);
    CopyTensor(flat.Rows(0, count), flat.Rows(at, at + count));
  }
  named_.emplace_back(name, half);
  return half;
}

Tensor Bf16Block::Weight(const std::string& name, Shape shape, float spread, uint64_t seed) {
  Tensor made = Drawn(name, shape, spread, seed);
  named_.emplace_back(absl::StrCat("d", name),
                      arena_.Zeros(DataType::kFloat32, std::move(shape), MemoryKind::kActivation));
  return made;
}

Bf16Block::Bf16Block(const BlockSize& size, BlockAttention attention,
                     std::shared_ptr<Device> device, uint64_t seed)
    : size_(size),
      attention_(attention),
      device_(std::move(device)),
      arena_(device_),
      backend_(MakeCudaBackend(&arena_, device_, DataType::kBFloat16)) {
  CHECK_EQ(size.hidden % size.heads, 0);
  const int64_t m = size.rows(), c = size.hidden, f = size.inner();
  const float spread = 1 / std::sqrt(static_cast<float>(c));
  const auto weight = [&](const char* name, Shape shape, float s, Tensor* value, Tensor* gradient) {
    *value = Weight(name, std::move(shape), s, seed);
    *gradient = named_.back().second;
  };
  weight("wqkv", {c, 3 * c}, spread, &wqkv_, &dwqkv_);
  weight("bqkv", {3 * c}, 0.1f, &bqkv_, &dbqkv_);
  weight("wo", {c, c}, spread, &wo_, &dwo_);
  weight("bo", {c}, 0.1f, &bo_, &dbo_);
  weight("w1", {c, f}, spread, &w1_, &dw1_);
  weight("b1", {f}, 0.1f, &b1_, &db1_);
  weight("w2", {f, c}, spread / 2, &w2_, &dw2_);
  weight("b2", {c}, 0.1f, &b2_, &db2_);
  const auto norm = [&](const char* name, float value, Tensor* made, Tensor* gradient) {
    *made = New(DataType::kBFloat16, {c});
    backend_->Fill(*made, value);
    *gradient = arena_.Zeros(DataType::kFloat32, {c}, MemoryKind::kActivation);
    named_.emplace_back(name, *made);
    named_.emplace_back(absl::StrCat("d", name), *gradient);
  };
  norm("gamma1", 1, &gamma1_, &dgamma1_);
  norm("beta1", 0.1f, &beta1_, &dbeta1_);
  norm("gamma2", 1, &gamma2_, &dgamma2_);
  norm("beta2", -0.1f, &beta2_, &dbeta2_);
  for (Tensor* t : {&mean1_, &rstd1_, &mean2_, &rstd2_}) *t = New(DataType::kFloat32, {m});
  x_ = Drawn("x", {m, c}, 1, seed);
  dy_ = Drawn("dy", {m, c}, 1, seed);
  const auto half = [&](const char* name, Shape shape) {
    const Tensor t = New(DataType::kBFloat16, std::move(shape));
    named_.emplace_back(name, t);
    return t;
  };
  y_ = half("y", {m, c});
  dx_ = half("dx", {m, c});
  norm1_ = half("norm1", {m, c});
  norm2_ = half("norm2", {m, c});
  qkv_ = half("qkv", {m, 3 * c});
  dqkv_ = half("dqkv", {m, 3 * c});
  mix_ = half("mix", {m, c});
  dmix_ = half("dmix", {m, c});
  middle_ = half("middle", {m, c});
  dmiddle_ = half("dmiddle", {m, c});
  dnorm_ = half("dnorm", {m, c});
  branch_ = half("branch", {m, c});
  h_ = half("h", {m, f});
  gelu_ = half("gelu", {m, f});
  dh_ = half("dh", {m, f});
  if (attention == BlockAttention::kBackend) {
    lse_ = New(DataType::kFloat32, {size.samples, size.heads, size.tokens});
  } else {
    p_ = half("p", {size.samples, size.heads, size.tokens, size.tokens});
    dp_ = half("dp", {size.heads, size.tokens, size.tokens});
  }
}

void Bf16Block::AttentionForward() {
  if (attention_ == BlockAttention::kBackend) {
    backend_->attention().Forward(ShapeOf(size_), qkv_, mix_, lse_);
    return;
  }
  for (int64_t s = 0; s < size_.samples; ++s) ProductsForward(s);
}

void Bf16Block::AttentionBackward() {
  if (attention_ == BlockAttention::kBackend) {
    backend_->attention().Gradient(ShapeOf(size_), dmix_, qkv_, mix_, lse_, dqkv_);
    return;
  }
  for (int64_t s = 0; s < size_.samples; ++s) ProductsBackward(s);
}

// One product for each head of a sample.
void Bf16Block::HeadProduct(MatmulCall call) {
  call.type = MatmulCall::Type::kBFloat16;
  call.batch = size_.heads;
  device_->Matmul(call);
}

void Bf16Block::ProductsForward(int64_t sample) {
  const int64_t t = size_.tokens, c = size_.hidden, d = size_.head_size();
  const BFloat16* const q = Half(qkv_) + sample * t * 3 * c;
  BFloat16* const p = Half(p_) + sample * size_.heads * t * t;
  MatmulCall scores;  // q k^T / sqrt(d)
  scores.m = scores.n = t;
  scores.k = d;
  scores.transpose_b = true;
  scores.scale = 1 / std::sqrt(static_cast<double>(d));
  scores.a = q;
  scores.b = q + c;
  scores.row_a = scores.row_b = 3 * c;
  scores.step_a = scores.step_b = d;
  scores.c = p;
  scores.step_c = t * t;
  HeadProduct(scores);
  CausalSoftmax(*device_, size_.heads, t, p);
  MatmulCall out;  // p v
  out.m = out.k = t;
  out.n = d;
  out.a = p;
  out.step_a = t * t;
  out.b = q + 2 * c;
  out.row_b = 3 * c;
  out.step_b = d;
  out.c = Half(mix_) + sample * t * c;
  out.row_c = c;
  out.step_c = d;
  HeadProduct(out);
}

void Bf16Block::ProductsBackward(int64_t sample) {
  const int64_t t = size_.tokens, c = size_.hidden, d = size_.head_size();
  const BFloat16* const q = Half(qkv_) + sample * t * 3 * c;
  BFloat16* const dq = Half(dqkv_) + sample * t * 3 * c;
  const BFloat16* const p = Half(p_) + sample * size_.heads * t * t;
  const BFloat16* const dmix = Half(dmix_) + sample * t * c;
  MatmulCall dp;  // dout v^T
  dp.m = dp.n = t;
  dp.k = d;
  dp.transpose_b = true;
  dp.a = dmix;
  dp.row_a = c;
  dp.b = q + 2 * c;
  dp.row_b = 3 * c;
  dp.step_a = dp.step_b = d;
  dp.c = dp_.data();
  dp.step_c = t * t;
  HeadProduct(dp);
  MatmulCall dv;  // p^T dout
  dv.m = dv.k = t;
  dv.n = d;
  dv.transpose_a = true;
  dv.a = p;
  dv.step_a = t * t;
  dv.b = dmix;
  dv.row_b = c;
  dv.step_b = d;
  dv.c = dq + 2 * c;
  dv.row_c = 3 * c;
  dv.step_c = d;
  HeadProduct(dv);
  const float scale = 1 / std::sqrt(static_cast<float>(d));
  CausalSoftmaxGradient(*device_, p, size_.heads, t, scale, Half(dp_));
  MatmulCall to_q = dv;  // dscores k
  to_q.transpose_a = false;
  to_q.a = dp_.data();
  to_q.b = q + c;
  to_q.row_b = 3 * c;
  to_q.c = dq;
  HeadProduct(to_q);
  MatmulCall to_k = to_q;  // dscores^T q
  to_k.transpose_a = true;
  to_k.b = q;
  to_k.c = dq + c;
  HeadProduct(to_k);
}

void Bf16Block::Forward() {
  Backend& b = *backend_;
  b.LayerNorm(x_, gamma1_, beta1_, norm1_, mean1_, rstd1_);
  b.Linear(norm1_, wqkv_, bqkv_, qkv_);
  AttentionForward();
  b.Linear(mix_, wo_, bo_, branch_);
  b.Add(x_, branch_, middle_);
  b.LayerNorm(middle_, gamma2_, beta2_, norm2_, mean2_, rstd2_);
  b.LinearGelu(norm2_, w1_, b1_, h_, gelu_);
  b.Linear(gelu_, w2_, b2_, branch_);
  b.Add(middle_, branch_, y_);
}

// From dnorm_, the gradient of the norm's output; dx has `residual` added.
void Bf16Block::NormGradients(const Tensor& x, const Tensor& gamma, const Tensor& mean,
                              const Tensor& rstd, const Tensor& residual, const Tensor& dgamma,
                              const Tensor& dbeta, const Tensor& dx) {
  backend_->LayerNormWeightGradient(dnorm_, x, mean, rstd, dgamma, dbeta);
  LayerNormInputGradient(*device_, Half(dnorm_), Half(x), Half(gamma), Float(mean), Float(rstd),
                         Half(residual), size_.rows(), size_.hidden, Half(dx));
}

void Bf16Block::Backward() {
  Backend& b = *backend_;
  b.LinearGeluInputGradient(dy_, w2_, h_, dh_);
  b.LinearWeightGradient(gelu_, dy_, dw2_, db2_);
  b.LinearInputGradient(dh_, w1_, dnorm_);
  b.LinearWeightGradient(norm2_, dh_, dw1_, db1_);
  NormGradients(middle_, gamma2_, mean2_, rstd2_, dy_, dgamma2_, dbeta2_, dmiddle_);
  b.LinearInputGradient(dmiddle_, wo_, dmix_);
  b.LinearWeightGradient(mix_, dmiddle_, dwo_, dbo_);
  AttentionBackward();
  b.LinearInputGradient(dqkv_, wqkv_, dnorm_);
  b.LinearWeightGradient(norm1_, dqkv_, dwqkv_, dbqkv_);
  NormGradients(x_, gamma1_, mean1_, rstd1_, dmiddle_, dgamma1_, dbeta1_, dx_);
}

std::vector<float> Bf16Block::Value(const std::string& name) {
  for (const auto& [known, tensor] : named_) {
    if (known == name) return HostValues(tensor);
  }
  LOG(FATAL) << "the block has no \"" << name << "\"";
}

}  // namespace gpu
}  // namespace pipelab
