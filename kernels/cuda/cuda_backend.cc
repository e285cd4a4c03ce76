#include "kernels/cuda/cuda_backend.h"

#include <utility>

#include "glog/logging.h"
#include "kernels/cuda/functions.h"
#include "kernels/cuda/groups.h"
#include "kernels/shape_checks.h"

namespace pipelab {
namespace {

using gpu::Data;
using gpu::MatmulCall;

class CudaBackend final : public Backend {
 public:
  CudaBackend(Arena* arena, std::shared_ptr<gpu::Device> device)
      : Backend(arena), device_(std::move(device)) {
    CHECK(arena->memory().get() == device_.get()) << "an arena of another memory";
  }

  absl::string_view name() const override { return device_->name(); }
  absl::Status Finish() override { return device_->Finish(); }
  int64_t library_ns() const override { return device_->busy_ns(); }

  AttentionKernels& attention() override { return *attention_; }
  BatchNormKernels& batch_norm() override { return *batch_norm_; }
  ConvolutionKernels& convolution() override { return *convolution_; }
  EmbeddingKernels& embedding() override { return *embedding_; }
  LossKernels& loss() override { return *loss_; }
  OptimizerKernels& optimizer() override { return *optimizer_; }
  PoolingKernels& pooling() override { return *pooling_; }

  void Linear(const Tensor& x_MK, const Tensor& w_KN, const Tensor& b_N,
              const Tensor& y_MN) override {
    const auto [m, k, n] = CheckMatmul("Linear", x_MK, w_KN, y_MN, b_N);
    MatmulCall call = Product(m, k, n, x_MK, w_KN, y_MN);
    if (!b_N.empty()) {
      call.then = MatmulCall::Then::kBias;
      call.bias = Data(b_N);
    }
    device_->Matmul(call);
  }
  void LinearInputGradient(const Tensor& dy_MN, const Tensor& w_KN, const Tensor& dx_MK) override {
    const auto [m, k, n] = CheckMatmul("LinearInputGradient", dx_MK, w_KN, dy_MN, Tensor());
    MatmulCall call = Product(m, n, k, dy_MN, w_KN, dx_MK);
    call.transpose_b = true;
    device_->Matmul(call);
  }
  void LinearWeightGradient(const Tensor& x_MK, const Tensor& dy_MN, const Tensor& dw_KN,
                            const Tensor& db_N) override {
    const auto [m, k, n] = CheckMatmul("LinearWeightGradient", x_MK, dw_KN, dy_MN, db_N);
    MatmulCall call = Product(k, m, n, x_MK, dy_MN, dw_KN);
    call.transpose_a = call.add = true;
    device_->Matmul(call);
    if (!db_N.empty()) gpu::AddColumnSums(*device_, Data(dy_MN), m, n, Data(db_N));
  }
  void LinearTransposed(const Tensor& x_MK, const Tensor& w_NK, const Tensor& y_MN) override {
    const auto [m, k, n] = CheckMatmulTransposed("LinearTransposed", x_MK, w_NK, y_MN);
    MatmulCall call = Product(m, k, n, x_MK, w_NK, y_MN);
    call.transpose_b = true;
    device_->Matmul(call);
  }
  void LinearTransposedInputGradient(const Tensor& dy_MN, const Tensor& w_NK,
                                     const Tensor& dx_MK) override {
    const auto [m, k, n] =
        CheckMatmulTransposed("LinearTransposedInputGradient", dx_MK, w_NK, dy_MN);
    device_->Matmul(Product(m, n, k, dy_MN, w_NK, dx_MK));
  }
  void LinearTransposedWeightGradient(const Tensor& x_MK, const Tensor& dy_MN,
                                      const Tensor& dw_NK) override {
    const auto [m, k, n] =
        CheckMatmulTransposed("LinearTransposedWeightGradient", x_MK, dw_NK, dy_MN);
    MatmulCall call = Product(n, m, k, dy_MN, x_MK, dw_NK);
    call.transpose_a = call.add = true;
    device_->Matmul(call);
  }

  void LinearGelu(const Tensor& x_MK, const Tensor& w_KN, const Tensor& b_N, const Tensor& h_MN,
                  const Tensor& y_MN) override {
    const auto [m, k, n] = CheckMatmul("LinearGelu", x_MK, w_KN, h_MN, b_N);
    CheckSameSize("LinearGelu", {&h_MN, &y_MN});
    MatmulCall call = Product(m, k, n, x_MK, w_KN, y_MN);
    call.then = MatmulCall::Then::kBiasGelu;
    call.bias = b_N.empty() ? nullptr : Data(b_N);
    call.aux = Data(h_MN);
    device_->Matmul(call);
  }
  void LinearGeluInputGradient(const Tensor& dy_MN, const Tensor& w_KN, const Tensor& h_MK,
                               const Tensor& dh_MK) override {
    const auto [m, k, n] = CheckMatmul("LinearGeluInputGradient", dh_MK, w_KN, dy_MN, Tensor());
    CheckSameSize("LinearGeluInputGradient", {&h_MK, &dh_MK});
    MatmulCall call = Product(m, n, k, dy_MN, w_KN, dh_MK);
    call.transpose_b = true;
    call.then = MatmulCall::Then::kGeluGradient;
    call.aux = Data(h_MK);
    device_->Matmul(call);
  }

  void LayerNorm(const Tensor& x_MC, const Tensor& gamma_C, const Tensor& beta_C,
                 const Tensor& y_MC, const Tensor& mean_M, const Tensor& rstd_M) override {
    const auto [m, c] =
        CheckRows("LayerNorm", {&x_MC, &y_MC}, {&gamma_C, &beta_C}, {&mean_M, &rstd_M});
    gpu::LayerNorm(*device_, Data(x_MC), Data(gamma_C), Data(beta_C), m, c, Data(y_MC),
                   Data(mean_M), Data(rstd_M));
  }
  void LayerNormInputGradient(const Tensor& dy_MC, const Tensor& x_MC, const Tensor& gamma_C,
                              const Tensor& mean_M, const Tensor& rstd_M,
                              const Tensor& dx_MC) override {
    const auto [m, c] = CheckRows("LayerNormInputGradient", {&dy_MC, &x_MC, &dx_MC}, {&gamma_C},
                                  {&mean_M, &rstd_M});
    gpu::LayerNormInputGradient(*device_, Data(dy_MC), Data(x_MC), Data(gamma_C), Data(mean_M),
                                Data(rstd_M), m, c, Data(dx_MC));
  }
  void LayerNormWeightGradient(const Tensor& dy_MC, const Tensor& x_MC, const Tensor& mean_M,
                               const Tensor& rstd_M, const Tensor& dgamma_C,
                               const Tensor& dbeta_C) override {
    const auto [m, c] = CheckRows("LayerNormWeightGradient", {&dy_MC, &x_MC}, {&dgamma_C, &dbeta_C},
                                  {&mean_M, &rstd_M});
    gpu::LayerNormWeightGradient(*device_, Data(dy_MC), Data(x_MC), Data(mean_M), Data(rstd_M), m,
                                 c, Data(dgamma_C), Data(dbeta_C));
  }

  void Gelu(const Tensor& x, const Tensor& y) override {
    gpu::Gelu(*device_, Data(x), CheckSameSize("Gelu", {&x, &y}), Data(y));
  }
  void GeluGradient(const Tensor& dy, const Tensor& x, const Tensor& dx) override {
    const int64_t n = CheckSameSize("GeluGradient", {&dy, &x, &dx});
    gpu::GeluGradient(*device_, Data(dy), Data(x), n, Data(dx));
  }
  void Relu(const Tensor& x, const Tensor& y) override {
    gpu::Relu(*device_, Data(x), CheckSameSize("Relu", {&x, &y}), Data(y));
  }
  void ReluGradient(const Tensor& dy, const Tensor& y, const Tensor& dx) override {
    const int64_t n = CheckSameSize("ReluGradient", {&dy, &y, &dx});
    gpu::ReluGradient(*device_, Data(dy), Data(y), n, Data(dx));
  }

  void AddDropout(const Tensor& a, const Tensor& b, const DropoutMask& mask,
                  const Tensor& y) override {
    const int64_t n = CheckSameSize("AddDropout", {&a, &b, &y});
    CheckDropoutRate("AddDropout", mask.rate);
    if (mask.rate == 0) {
      gpu::Add(*device_, Data(a), Data(b), n, Data(y));
    } else {
      gpu::Dropout(*device_, Data(a), Data(b), NumbersOf(mask), n, Data(y));
    }
  }
  void Dropout(const Tensor& x, const DropoutMask& mask, const Tensor& y) override {
    const int64_t n = CheckSameSize("Dropout", {&x, &y});
    CheckDropoutRate("Dropout", mask.rate);
    if (mask.rate == 0) {
      Copy(x, y);
    } else {
      gpu::Dropout(*device_, nullptr, Data(x), NumbersOf(mask), n, Data(y));
    }
  }
  void Add(const Tensor& a, const Tensor& b, const Tensor& y) override {
    const int64_t n = CheckSameSize("Add", {&a, &b, &y});
    gpu::Add(*device_, Data(a), Data(b), n, Data(y));
  }

  void Fill(const Tensor& x, float value) override {
    gpu::Fill(*device_, value, x.size(), Data(x));
  }
  void Copy(const Tensor& from, const Tensor& to) override {
    CheckSameSize("Copy", {&from, &to});
    if (from.size() > 0 && from.data() != to.data()) {
      device_->Copy(Data(from), Data(to), from.bytes());
    }
  }
  void CopyColumns(const Tensor& from_MC, int64_t from_column, const Tensor& to_MD,
                   int64_t to_column, int64_t columns) override {
    const int64_t m = CheckCopyColumns(from_MC, from_column, to_MD, to_column, columns);
    gpu::CopyColumns(*device_, Data(from_MC) + from_column, RowsOf(from_MC).columns, m, columns,
                     Data(to_MD) + to_column, RowsOf(to_MD).columns);
  }

 private:
  // c_MN = a_MK b_KN, neither of them transposed.
  static MatmulCall Product(int64_t m, int64_t k, int64_t n, const Tensor& a, const Tensor& b,
                            const Tensor& c) {
    MatmulCall call;
    call.m = m;
    call.k = k;
    call.n = n;
    call.a = Data(a);
    call.b = Data(b);
    call.c = Data(c);
    return call;
  }
  static gpu::DropoutNumbers NumbersOf(const DropoutMask& mask) {
    return {mask.rng.seed(), mask.rng.stream(), mask.offset, mask.rate};
  }

  const std::shared_ptr<gpu::Device> device_;
  const std::unique_ptr<AttentionKernels> attention_ =
      gpu::MakeAttentionKernels(&arena(), device_.get());
  const std::unique_ptr<BatchNormKernels> batch_norm_ = gpu::MakeBatchNormKernels(device_.get());
  const std::unique_ptr<ConvolutionKernels> convolution_ =
      gpu::MakeConvolutionKernels(&arena(), device_.get());
  const std::unique_ptr<EmbeddingKernels> embedding_ = gpu::MakeEmbeddingKernels(device_.get());
  const std::unique_ptr<LossKernels> loss_ = gpu::MakeLossKernels(device_.get());
  const std::unique_ptr<OptimizerKernels> optimizer_ = gpu::MakeOptimizerKernels(device_.get());
  const std::unique_ptr<PoolingKernels> pooling_ = gpu::MakePoolingKernels(device_.get());
};

}  // namespace

std::unique_ptr<Backend> MakeCudaBackend(Arena* arena, std::shared_ptr<gpu::Device> device) {
  return std::make_unique<CudaBackend>(arena, std::move(device));
}

}  // namespace pipelab
