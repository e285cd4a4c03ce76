#include "kernels/cuda/bf16_block.h"

#include <cmath>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "glog/logging.h"
#include "kernels/cuda/functions.h"
#include "kernels/tensor/host_values.h"
#include "tools/base/rng.h"

namespace pipelab {
namespace gpu {
namespace {

using bf16::Bf16;

Bf16* Half(const Tensor& x) { return static_cast<Bf16*>(x.data()); }
float* Float(const Tensor& x) { return static_cast<float*>(x.data()); }

}  // namespace

Tensor Bf16Block::New(DataType type, Shape shape) {
  return arena_.Allocate(type, std::move(shape), MemoryKind::kActivation);
}

// Of a million numbers, repeated: what they are makes no difference to speed, and drawing takes
// long.
Tensor Bf16Block::Drawn(const std::string& name, Shape shape, float spread, uint64_t seed) {
  constexpr int64_t kDistinct = int64_t{1} << 20;
  const Tensor values = New(DataType::kFloat32, shape);
  FillOnHost<float>(values, [&](absl::Span<float> all) {
    const CounterRng rng(seed, name);
    for (size_t i = 0; i < all.size(); ++i) {
      all[i] = static_cast<int64_t>(i) < kDistinct ? spread * rng.Normal(i) : all[i - kDistinct];
    }
  });
  Tensor half = New(DataType::kBFloat16, std::move(shape));
  bf16::FromFloat(*device_, Float(values), values.size(), Half(half));
  named_.emplace_back(name, half);
  return half;
}

Tensor Bf16Block::Weight(const std::string& name, Shape shape, float spread, uint64_t seed) {
  Tensor made = Drawn(name, shape, spread, seed);
  named_.emplace_back(absl::StrCat("d", name),
                      arena_.Zeros(DataType::kFloat32, std::move(shape), MemoryKind::kActivation));
  return made;
}

Bf16Block::Bf16Block(const BlockSize& size, std::shared_ptr<Device> device, uint64_t seed)
    : size_(size), device_(std::move(device)), arena_(device_) {
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
  const auto floats = [&](const char* name, int64_t n, float value) {
    const Tensor t = New(DataType::kFloat32, {n});
    Fill(*device_, value, n, Float(t));
    named_.emplace_back(name, t);
    return t;
  };
  gamma1_ = floats("gamma1", c, 1);
  beta1_ = floats("beta1", c, 0.1f);
  gamma2_ = floats("gamma2", c, 1);
  beta2_ = floats("beta2", c, -0.1f);
  dgamma1_ = floats("dgamma1", c, 0);
  dbeta1_ = floats("dbeta1", c, 0);
  dgamma2_ = floats("dgamma2", c, 0);
  dbeta2_ = floats("dbeta2", c, 0);
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
  p_ = half("p", {size.samples, size.heads, size.tokens, size.tokens});
  dp_ = half("dp", {size.heads, size.tokens, size.tokens});
}

void Bf16Block::Product(const Tensor& a, const Tensor& b, const Tensor& c, int64_t m, int64_t k,
                        int64_t n, MatmulCall call) {
  if (call.type == MatmulCall::Type::kFloat32) call.type = MatmulCall::Type::kBFloat16;
  call.m = m;
  call.k = k;
  call.n = n;
  call.a = a.data();
  call.b = b.data();
  call.c = c.data();
  device_->Matmul(call);
}

// dw += x^T dy, db += the column sums of dy.
void Bf16Block::WeightGradient(const Tensor& x, const Tensor& dy, int64_t k, int64_t n,
                               const Tensor& dw, const Tensor& db) {
  MatmulCall call;
  call.type = MatmulCall::Type::kBFloat16Factors;
  call.transpose_a = call.add = true;
  Product(x, dy, dw, k, size_.rows(), n, call);
  bf16::AddColumnSums(*device_, Half(dy), size_.rows(), n, Float(db));
}

// One product for each head of a sample.
void Bf16Block::HeadProduct(MatmulCall call) {
  call.type = MatmulCall::Type::kBFloat16;
  call.batch = size_.heads;
  device_->Matmul(call);
}

void Bf16Block::AttentionForward(int64_t sample) {
  const int64_t t = size_.tokens, c = size_.hidden, d = size_.head_size();
  const Bf16* const q = Half(qkv_) + sample * t * 3 * c;
  Bf16* const p = Half(p_) + sample * size_.heads * t * t;
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
  bf16::CausalSoftmax(*device_, size_.heads, t, p);
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

void Bf16Block::AttentionBackward(int64_t sample) {
  const int64_t t = size_.tokens, c = size_.hidden, d = size_.head_size();
  const Bf16* const q = Half(qkv_) + sample * t * 3 * c;
  Bf16* const dq = Half(dqkv_) + sample * t * 3 * c;
  const Bf16* const p = Half(p_) + sample * size_.heads * t * t;
  const Bf16* const dmix = Half(dmix_) + sample * t * c;
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
  bf16::CausalSoftmaxGradient(*device_, p, size_.heads, t, scale, Half(dp_));
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
  const int64_t m = size_.rows(), c = size_.hidden, f = size_.inner();
  MatmulCall bias;
  bias.then = MatmulCall::Then::kBias;
  bf16::LayerNorm(*device_, Half(x_), Float(gamma1_), Float(beta1_), m, c, Half(norm1_),
                  Float(mean1_), Float(rstd1_));
  bias.bias = bqkv_.data();
  Product(norm1_, wqkv_, qkv_, m, c, 3 * c, bias);
  for (int64_t s = 0; s < size_.samples; ++s) AttentionForward(s);
  bias.bias = bo_.data();
  Product(mix_, wo_, branch_, m, c, c, bias);
  bf16::Add(*device_, Half(x_), Half(branch_), m * c, Half(middle_));
  bf16::LayerNorm(*device_, Half(middle_), Float(gamma2_), Float(beta2_), m, c, Half(norm2_),
                  Float(mean2_), Float(rstd2_));
  MatmulCall gelu;
  gelu.then = MatmulCall::Then::kBiasGelu;
  gelu.bias = b1_.data();
  gelu.aux = h_.data();
  Product(norm2_, w1_, gelu_, m, c, f, gelu);
  bias.bias = b2_.data();
  Product(gelu_, w2_, branch_, m, f, c, bias);
  bf16::Add(*device_, Half(middle_), Half(branch_), m * c, Half(y_));
}

void Bf16Block::Backward() {
  const int64_t m = size_.rows(), c = size_.hidden, f = size_.inner();
  MatmulCall transposed;
  transposed.transpose_b = true;
  MatmulCall gelu = transposed;
  gelu.then = MatmulCall::Then::kGeluGradient;
  gelu.aux = h_.data();
  Product(dy_, w2_, dh_, m, c, f, gelu);
  WeightGradient(gelu_, dy_, f, c, dw2_, db2_);
  Product(dh_, w1_, dnorm_, m, f, c, transposed);
  WeightGradient(norm2_, dh_, c, f, dw1_, db1_);
  bf16::LayerNormWeightGradient(*device_, Half(dnorm_), Half(middle_), Float(mean2_), Float(rstd2_),
                                m, c, Float(dgamma2_), Float(dbeta2_));
  bf16::LayerNormInputGradient(*device_, Half(dnorm_), Half(middle_), Float(gamma2_), Float(mean2_),
                               Float(rstd2_), Half(dy_), m, c, Half(dmiddle_));
  Product(dmiddle_, wo_, dmix_, m, c, c, transposed);
  WeightGradient(mix_, dmiddle_, c, c, dwo_, dbo_);
  for (int64_t s = 0; s < size_.samples; ++s) AttentionBackward(s);
  Product(dqkv_, wqkv_, dnorm_, m, 3 * c, c, transposed);
  WeightGradient(norm1_, dqkv_, c, 3 * c, dwqkv_, dbqkv_);
  bf16::LayerNormWeightGradient(*device_, Half(dnorm_), Half(x_), Float(mean1_), Float(rstd1_), m,
                                c, Float(dgamma1_), Float(dbeta1_));
  bf16::LayerNormInputGradient(*device_, Half(dnorm_), Half(x_), Float(gamma1_), Float(mean1_),
                               Float(rstd1_), Half(dmiddle_), m, c, Half(dx_));
}

std::vector<float> Bf16Block::Value(const std::string& name) {
  for (const auto& [known, tensor] : named_) {
    if (known != name) continue;
    if (tensor.type() == DataType::kFloat32) return HostValues(tensor);
    const Tensor wide = New(DataType::kFloat32, tensor.shape());
    bf16::ToFloat(*device_, Half(tensor), tensor.size(), Float(wide));
    return HostValues(wide);
  }
  LOG(FATAL) << "the block has no \"" << name << "\"";
}

}  // namespace gpu
}  // namespace pipelab
