#include "kernels/cuda/cuda_backend.h"

#include <utility>

#include "glog/logging.h"
#include "kernels/cuda/functions.h"
#include "kernels/cuda/groups.h"
#include "kernels/shape_checks.h"

namespace pipelab {
namespace {

using gpu::ByType;
using gpu::Data;
using gpu::DataOf;
using gpu::MatmulCall;

class CudaBackend final : public Backend {
 public:
  CudaBackend(Arena* arena, std::shared_ptr<gpu::Device> device, DataType activations)
      : Backend(arena, activations), device_(std::move(device)) {
    CHECK(arena->memory().get() == device_.get()) << "an arena of another memory";
  }

  absl::string_view name() const override { return device_->name(); }
  absl::Status Finish() override { return device_->Finish(); }
  int64_t library_ns() const override { return device_->busy_ns(); }

  AttentionKernels& attention() override { return *attention_; }
  BatchNormKernels& batch_norm() override { return *batch_norm_; }
  ConvolutionKernels& convolution() override { return *convolution_; }
  EmbeddingKernels& embedding() override { return *embedding_; }
  ExpertKernels& experts() override { return *experts_; }
  GraphKernels& graphs() override { return *graphs_; }
  LossKernels& loss() override { return *loss_; }
  OptimizerKernels& optimizer() override { return *optimizer_; }
  PoolingKernels& pooling() override { return *pooling_; }
  QuantizedKernels& quantized() override { return *quantized_; }

  void DoLinear(const Tensor& x_MK, const Tensor& w_KN, const Tensor& b_N,
                const Tensor& y_MN) override {
    const auto [m, k, n] = MatmulOf(x_MK, y_MN);
    MatmulCall call = Product(m, k, n, x_MK, w_KN, y_MN);
    if (!b_N.empty()) {
      call.then = MatmulCall::Then::kBias;
      call.bias = OfType(b_N, y_MN);
    }
    device_->Matmul(call);
  }
  void DoLinearInputGradient(const Tensor& dy_MN, const Tensor& w_KN,
                             const Tensor& dx_MK) override {
    const auto [m, k, n] = MatmulOf(dx_MK, dy_MN);
    MatmulCall call = Product(m, n, k, dy_MN, w_KN, dx_MK);
    call.transpose_b = true;
    device_->Matmul(call);
  }
  void DoLinearWeightGradient(const Tensor& x_MK, const Tensor& dy_MN, const Tensor& dw_KN,
                              const Tensor& db_N) override {
    const auto [m, k, n] = MatmulOf(x_MK, dy_MN);
    MatmulCall call = Product(k, m, n, x_MK, dy_MN, dw_KN);
    call.transpose_a = call.add = true;
    device_->Matmul(call);
    if (db_N.empty()) return;
    ByType(dy_MN, [&, m = m, n = n](auto at) {
      gpu::AddColumnSums(*device_, at(dy_MN), m, n, Data(db_N));
    });
  }
  void DoLinearTransposed(const Tensor& x_MK, const Tensor& w_NK, const Tensor& y_MN) override {
    const auto [m, k, n] = MatmulOf(x_MK, y_MN);
    MatmulCall call = Product(m, k, n, x_MK, w_NK, y_MN);
    call.transpose_b = true;
    device_->Matmul(call);
  }
  void DoLinearTransposedInputGradient(const Tensor& dy_MN, const Tensor& w_NK,
                                       const Tensor& dx_MK) override {
    const auto [m, k, n] = MatmulOf(dx_MK, dy_MN);
    device_->Matmul(Product(m, n, k, dy_MN, w_NK, dx_MK));
  }
  void DoLinearTransposedWeightGradient(const Tensor& x_MK, const Tensor& dy_MN,
                                        const Tensor& dw_NK) override {
    const auto [m, k, n] = MatmulOf(x_MK, dy_MN);
    MatmulCall call = Product(n, m, k, dy_MN, x_MK, dw_NK);
    call.transpose_a = call.add = true;
    device_->Matmul(call);
  }

  void DoLinearGelu(const Tensor& x_MK, const Tensor& w_KN, const Tensor& b_N, const Tensor& h_MN,
                    const Tensor& y_MN) override {
    const auto [m, k, n] = MatmulOf(x_MK, h_MN);
    MatmulCall call = Product(m, k, n, x_MK, w_KN, y_MN);
    call.then = MatmulCall::Then::kBiasGelu;
    call.bias = OfType(b_N, y_MN);
    call.aux = OfType(h_MN, y_MN);
    device_->Matmul(call);
  }
  void DoLinearGeluInputGradient(const Tensor& dy_MN, const Tensor& w_KN, const Tensor& h_MK,
                                 const Tensor& dh_MK) override {
    const auto [m, k, n] = MatmulOf(dh_MK, dy_MN);
    MatmulCall call = Product(m, n, k, dy_MN, w_KN, dh_MK);
    call.transpose_b = true;
    call.then = MatmulCall::Then::kGeluGradient;
    call.aux = OfType(h_MK, dh_MK);
    device_->Matmul(call);
  }

  void DoLayerNorm(const Tensor& x_MC, const Tensor& gamma_C, const Tensor& beta_C,
                   const Tensor& y_MC, const Tensor& mean_M, const Tensor& rstd_M) override {
    const RowsSize size = RowsOf(x_MC);
    ByType(x_MC, [&](auto at) {
      gpu::LayerNorm(*device_, at(x_MC), at(gamma_C), at(beta_C), size.rows, size.columns, at(y_MC),
                     Data(mean_M), Data(rstd_M));
    });
  }
  void DoLayerNormInputGradient(const Tensor& dy_MC, const Tensor& x_MC, const Tensor& gamma_C,
                                const Tensor& mean_M, const Tensor& rstd_M,
                                const Tensor& dx_MC) override {
    const RowsSize size = RowsOf(dy_MC);
    ByType(x_MC, [&](auto at) {
      gpu::LayerNormInputGradient(*device_, at(dy_MC), at(x_MC), at(gamma_C), Data(mean_M),
                                  Data(rstd_M), at(Tensor()), size.rows, size.columns, at(dx_MC));
    });
  }
  void DoLayerNormWeightGradient(const Tensor& dy_MC, const Tensor& x_MC, const Tensor& mean_M,
                                 const Tensor& rstd_M, const Tensor& dgamma_C,
                                 const Tensor& dbeta_C) override {
    const RowsSize size = RowsOf(dy_MC);
    ByType(x_MC, [&](auto at) {
      gpu::LayerNormWeightGradient(*device_, at(dy_MC), at(x_MC), Data(mean_M), Data(rstd_M),
                                   size.rows, size.columns, Data(dgamma_C), Data(dbeta_C));
    });
  }

  void DoGelu(const Tensor& x, const Tensor& y, GeluForm form) override {
    const int64_t n = x.size();
    ByType(x, [&](auto at) { gpu::Gelu(*device_, form, at(x), n, at(y)); });
  }
  void DoGeluGradient(const Tensor& dy, const Tensor& x, const Tensor& dx, GeluForm form) override {
    const int64_t n = dy.size();
    ByType(x, [&](auto at) { gpu::GeluGradient(*device_, form, at(dy), at(x), n, at(dx)); });
  }
  void DoGate(GateKind kind, const Tensor& gu_M2F, const Tensor& y_MF) override {
    const RowsSize size = RowsOf(y_MF);
    ByType(y_MF, [&](auto at) {
      gpu::Gate(*device_, kind, at(gu_M2F), size.rows, size.columns, at(y_MF));
    });
  }
  void DoGateGradient(GateKind kind, const Tensor& dy_MF, const Tensor& gu_M2F,
                      const Tensor& dgu_M2F) override {
    const RowsSize size = RowsOf(dy_MF);
    ByType(dy_MF, [&](auto at) {
      gpu::GateGradient(*device_, kind, at(dy_MF), at(gu_M2F), size.rows, size.columns,
                        at(dgu_M2F));
    });
  }
  void DoRelu(const Tensor& x, const Tensor& y) override {
    const int64_t n = x.size();
    ByType(x, [&](auto at) { gpu::Relu(*device_, at(x), n, at(y)); });
  }
  void DoReluGradient(const Tensor& dy, const Tensor& y, const Tensor& dx) override {
    const int64_t n = dy.size();
    ByType(y, [&](auto at) { gpu::ReluGradient(*device_, at(dy), at(y), n, at(dx)); });
  }

  void DoAddDropout(const Tensor& a, const Tensor& b, const DropoutMask& mask,
                    const Tensor& y) override {
    const int64_t n = a.size();
    ByType(y, [&](auto at) {
      if (mask.rate == 0) {
        gpu::Add(*device_, at(a), at(b), n, at(y));
      } else {
        gpu::Dropout(*device_, at(a), at(b), NumbersOf(mask), n, at(y));
      }
    });
  }
  void DoDropout(const Tensor& x, const DropoutMask& mask, const Tensor& y) override {
    const int64_t n = x.size();
    if (mask.rate == 0) {
      Copy(x, y);
      return;
    }
    ByType(y, [&](auto at) {
      gpu::Dropout(*device_, at(Tensor()), at(x), NumbersOf(mask), n, at(y));
    });
  }
  void DoAdd(const Tensor& a, const Tensor& b, const Tensor& y) override {
    const int64_t n = a.size();
    if (y.type() != b.type()) {
      gpu::Add(*device_, Data(a), DataOf<BFloat16>(b), n, Data(y));
      return;
    }
    ByType(y, [&](auto at) { gpu::Add(*device_, at(a), at(b), n, at(y)); });
  }

  void Fill(const Tensor& x, float value) override {
    ByType(x, [&](auto at) { gpu::Fill(*device_, value, x.size(), at(x)); });
  }
  void DoCopy(const Tensor& from, const Tensor& to) override {
    const int64_t n = from.size();
    if (from.type() != to.type()) {
      ByType(from, [&](auto in) {
        ByType(to, [&](auto out) { gpu::Convert(*device_, in(from), n, out(to)); });
      });
    } else if (n > 0 && from.data() != to.data()) {
      device_->Copy(OfType(from, from), OfType(to, to), from.bytes());
    }
  }
  void DoCopyColumns(const Tensor& from_MC, int64_t from_column, const Tensor& to_MD,
                     int64_t to_column, int64_t columns) override {
    const int64_t m = RowsOf(from_MC).rows;
    const auto copy = [&](auto in, auto out) {
      gpu::CopyColumns(*device_, in(from_MC) + from_column, RowsOf(from_MC).columns, m, columns,
                       out(to_MD) + to_column, RowsOf(to_MD).columns);
    };
    if (from_MC.type() != to_MD.type()) {
      copy(gpu::DataAt<float>(), gpu::DataAt<BFloat16>());
    } else {
      ByType(to_MD, [&](auto at) { copy(at, at); });
    }
  }

 private:
  // The address of what must have the type of `like`.
  static void* OfType(const Tensor& x, const Tensor& like) {
    return ByType(like, [&](auto at) -> void* { return at(x); });
  }
  // c_MN = a_MK b_KN, neither of them transposed.
  static MatmulCall Product(int64_t m, int64_t k, int64_t n, const Tensor& a, const Tensor& b,
                            const Tensor& c) {
    MatmulCall call;
    if (a.type() == DataType::kBFloat16) {
      call.type = c.type() == DataType::kBFloat16 ? MatmulCall::Type::kBFloat16
                                                  : MatmulCall::Type::kBFloat16Factors;
    }
    call.m = m;
    call.k = k;
    call.n = n;
    call.a = OfType(a, a);
    call.b = OfType(b, a);
    call.c = call.type == MatmulCall::Type::kBFloat16 ? OfType(c, a) : Data(c);
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
  const std::unique_ptr<ExpertKernels> experts_ = gpu::MakeExpertKernels(device_.get());
  const std::unique_ptr<GraphKernels> graphs_ = gpu::MakeGraphKernels(device_.get());
  const std::unique_ptr<LossKernels> loss_ = gpu::MakeLossKernels(device_.get());
  const std::unique_ptr<OptimizerKernels> optimizer_ = gpu::MakeOptimizerKernels(device_.get());
  const std::unique_ptr<PoolingKernels> pooling_ = gpu::MakePoolingKernels(device_.get());
  const std::unique_ptr<QuantizedKernels> quantized_ = gpu::MakeQuantizedKernels(device_.get());
};

}  // namespace

std::unique_ptr<Backend> MakeCudaBackend(Arena* arena, std::shared_ptr<gpu::Device> device,
                                         DataType activations) {
  CHECK(activations != DataType::kInt32) << "activations are numbers";
  return std::make_unique<CudaBackend>(arena, std::move(device), activations);
}

}  // namespace pipelab
