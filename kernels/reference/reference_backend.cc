#include "kernels/reference/reference_backend.h"

#include <algorithm>
#include <vector>

#include "kernels/reference/functions.h"
#include "kernels/reference/groups.h"
#include "kernels/reference/wide.h"
#include "kernels/shape_checks.h"

namespace pipelab {
namespace {

class ReferenceBackend final : public Backend {
 public:
  using Backend::Backend;

  absl::string_view name() const override { return "reference"; }

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
    const MatmulSize size = MatmulOf(x_MK, y_MN);
    reference::Linear(size, Wide(x_MK), Wide(w_KN), Wide(b_N), WideResult(y_MN));
  }
  void DoLinearInputGradient(const Tensor& dy_MN, const Tensor& w_KN,
                             const Tensor& dx_MK) override {
    const MatmulSize size = MatmulOf(dx_MK, dy_MN);
    reference::LinearInputGradient(size, Wide(dy_MN), Wide(w_KN), WideResult(dx_MK));
  }
  void DoLinearWeightGradient(const Tensor& x_MK, const Tensor& dy_MN, const Tensor& dw_KN,
                              const Tensor& db_N) override {
    const MatmulSize size = MatmulOf(x_MK, dy_MN);
    reference::LinearWeightGradient(size, Wide(x_MK), Wide(dy_MN), WideResult(dw_KN),
                                    WideResult(db_N));
  }
  void DoLinearTransposed(const Tensor& x_MK, const Tensor& w_NK, const Tensor& y_MN) override {
    const MatmulSize size = MatmulOf(x_MK, y_MN);
    reference::LinearTransposed(size, Wide(x_MK), Wide(w_NK), WideResult(y_MN));
  }
  void DoLinearTransposedInputGradient(const Tensor& dy_MN, const Tensor& w_NK,
                                       const Tensor& dx_MK) override {
    const MatmulSize size = MatmulOf(dx_MK, dy_MN);
    reference::LinearTransposedInputGradient(size, Wide(dy_MN), Wide(w_NK), WideResult(dx_MK));
  }
  void DoLinearTransposedWeightGradient(const Tensor& x_MK, const Tensor& dy_MN,
                                        const Tensor& dw_NK) override {
    const MatmulSize size = MatmulOf(x_MK, dy_MN);
    reference::LinearTransposedWeightGradient(size, Wide(x_MK), Wide(dy_MN), WideResult(dw_NK));
  }

  void DoLayerNorm(const Tensor& x_MC, const Tensor& gamma_C, const Tensor& beta_C,
                   const Tensor& y_MC, const Tensor& mean_M, const Tensor& rstd_M) override {
    const RowsSize size = RowsOf(x_MC);
    reference::LayerNorm(size, Wide(x_MC), Wide(gamma_C), Wide(beta_C), WideResult(y_MC),
                         WideResult(mean_M), WideResult(rstd_M));
  }
  void DoLayerNormInputGradient(const Tensor& dy_MC, const Tensor& x_MC, const Tensor& gamma_C,
                                const Tensor& mean_M, const Tensor& rstd_M,
                                const Tensor& dx_MC) override {
    const RowsSize size = RowsOf(dy_MC);
    reference::LayerNormInputGradient(size, Wide(dy_MC), Wide(x_MC), Wide(gamma_C), Wide(mean_M),
                                      Wide(rstd_M), WideResult(dx_MC));
  }
  void DoLayerNormWeightGradient(const Tensor& dy_MC, const Tensor& x_MC, const Tensor& mean_M,
                                 const Tensor& rstd_M, const Tensor& dgamma_C,
                                 const Tensor& dbeta_C) override {
    const RowsSize size = RowsOf(dy_MC);
    reference::LayerNormWeightGradient(size, Wide(dy_MC), Wide(x_MC), Wide(mean_M), Wide(rstd_M),
                                       WideResult(dgamma_C), WideResult(dbeta_C));
  }

  void DoGelu(const Tensor& x, const Tensor& y, GeluForm form) override {
    reference::Gelu(form, Wide(x), WideResult(y));
  }
  void DoGeluGradient(const Tensor& dy, const Tensor& x, const Tensor& dx, GeluForm form) override {
    reference::GeluGradient(form, Wide(dy), Wide(x), WideResult(dx));
  }

  void DoGate(GateKind kind, const Tensor& gu_M2F, const Tensor& y_MF) override {
    reference::Gate(kind, RowsOf(y_MF), Wide(gu_M2F), WideResult(y_MF));
  }
  void DoGateGradient(GateKind kind, const Tensor& dy_MF, const Tensor& gu_M2F,
                      const Tensor& dgu_M2F) override {
    reference::GateGradient(kind, RowsOf(dy_MF), Wide(dy_MF), Wide(gu_M2F), WideResult(dgu_M2F));
  }
  void DoRelu(const Tensor& x, const Tensor& y) override {
    reference::Relu(Wide(x), WideResult(y));
  }
  void DoReluGradient(const Tensor& dy, const Tensor& y, const Tensor& dx) override {
    reference::ReluGradient(Wide(dy), Wide(y), WideResult(dx));
  }

  void DoAddDropout(const Tensor& a, const Tensor& b, const DropoutMask& mask,
                    const Tensor& y) override {
    std::vector<double> sum = Wide(a), branch = Wide(b);
    reference::Dropout(branch, mask, absl::MakeSpan(branch));
    for (size_t i = 0; i < sum.size(); ++i) y.f32()[i] = static_cast<float>(sum[i] + branch[i]);
  }
  void DoDropout(const Tensor& x, const DropoutMask& mask, const Tensor& y) override {
    reference::Dropout(Wide(x), mask, WideResult(y));
  }
  void DoAdd(const Tensor& a, const Tensor& b, const Tensor& y) override {
    AddDropout(a, b, DropoutMask(), y);
  }

  void Fill(const Tensor& x, float value) override {
    std::fill(x.f32().begin(), x.f32().end(), value);
  }
  void DoCopy(const Tensor& from, const Tensor& to) override {
    std::copy(from.f32().begin(), from.f32().end(), to.f32().begin());
  }
  void DoCopyColumns(const Tensor& from_MC, int64_t from_column, const Tensor& to_MD,
                     int64_t to_column, int64_t columns) override {
    const int64_t m = RowsOf(from_MC).rows;
    const int64_t from_width = RowsOf(from_MC).columns, to_width = RowsOf(to_MD).columns;
    for (int64_t i = 0; i < m; ++i) {
      for (int64_t j = 0; j < columns; ++j) {
        to_MD.f32()[i * to_width + to_column + j] = from_MC.f32()[i * from_width + from_column + j];
      }
    }
  }

 private:
  const std::unique_ptr<AttentionKernels> attention_ = reference::MakeAttentionKernels(&arena());
  const std::unique_ptr<BatchNormKernels> batch_norm_ = reference::MakeBatchNormKernels();
  const std::unique_ptr<ConvolutionKernels> convolution_ =
      reference::MakeConvolutionKernels(&arena());
  const std::unique_ptr<EmbeddingKernels> embedding_ = reference::MakeEmbeddingKernels();
  const std::unique_ptr<ExpertKernels> experts_ = reference::MakeExpertKernels();
  const std::unique_ptr<GraphKernels> graphs_ = reference::MakeGraphKernels();
  const std::unique_ptr<LossKernels> loss_ = reference::MakeLossKernels();
  const std::unique_ptr<OptimizerKernels> optimizer_ = reference::MakeOptimizerKernels();
  const std::unique_ptr<PoolingKernels> pooling_ = reference::MakePoolingKernels();
  const std::unique_ptr<QuantizedKernels> quantized_ = reference::MakeQuantizedKernels();
};

}  // namespace

std::unique_ptr<Backend> MakeReferenceBackend(Arena* arena) {
  return std::make_unique<ReferenceBackend>(arena);
}

}  // namespace pipelab
