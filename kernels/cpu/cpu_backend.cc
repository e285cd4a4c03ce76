#include "kernels/cpu/cpu_backend.h"

#include <algorithm>
#include <cstring>
#include <memory>

#include "kernels/cpu/elementwise.h"
#include "kernels/cpu/groups.h"
#include "kernels/cpu/library_clock.h"
#include "kernels/cpu/rows.h"
#include "kernels/cpu/sgemm.h"
#include "kernels/shape_checks.h"

namespace pipelab {
namespace {

using cpu::Data;
using cpu::kPlain;
using cpu::kTransposed;

// Rows of a product at a time, so that the pass over its n columns that follows (bias, column sums)
// finds them in the second-level cache.
int64_t PanelRows(int64_t n) {
  constexpr int64_t kPanelFloats = int64_t{1} << 17;
  return std::max<int64_t>(64, kPanelFloats / std::max<int64_t>(1, n) / 64 * 64);
}

// Numbers of a part of an elementwise pass, which threads share.
constexpr int64_t kNumbersPerPart = int64_t{1} << 15;

class CpuBackend final : public Backend {
 public:
  CpuBackend(Arena* arena, int threads) : Backend(arena), team_(threads) {}

  absl::string_view name() const override { return "cpu"; }
  int64_t library_ns() const override { return clock_.ns; }
  int64_t reorder_ns() const override { return clock_.reorder_ns; }

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
    const float *x = Data(x_MK), *w = Data(w_KN), *b = b_N.empty() ? nullptr : Data(b_N);
    float* y = Data(y_MN);
    const int64_t panel = b == nullptr ? m : PanelRows(n);
    for (int64_t i = 0; i < m; i += panel) {
      const int64_t rows = std::min(panel, m - i);
      gemm_.Run(kPlain, kPlain, rows, n, k, 1, x + i * k, k, w, n, 0, y + i * n, n);
      if (b != nullptr) cpu::AddBias(b, rows, n, y + i * n);
    }
  }
  void DoLinearInputGradient(const Tensor& dy_MN, const Tensor& w_KN,
                             const Tensor& dx_MK) override {
    const auto [m, k, n] = MatmulOf(dx_MK, dy_MN);
    gemm_.Run(kPlain, kTransposed, m, k, n, 1, Data(dy_MN), n, Data(w_KN), n, 0, Data(dx_MK), k);
  }
  void DoLinearWeightGradient(const Tensor& x_MK, const Tensor& dy_MN, const Tensor& dw_KN,
                              const Tensor& db_N) override {
    const auto [m, k, n] = MatmulOf(x_MK, dy_MN);
    gemm_.Run(kTransposed, kPlain, k, n, m, 1, Data(x_MK), k, Data(dy_MN), n, 1, Data(dw_KN), n);
    if (!db_N.empty()) cpu::AddColumnSums(Data(dy_MN), m, n, Data(db_N));
  }
  void DoLinearTransposed(const Tensor& x_MK, const Tensor& w_NK, const Tensor& y_MN) override {
    const auto [m, k, n] = MatmulOf(x_MK, y_MN);
    gemm_.Run(kPlain, kTransposed, m, n, k, 1, Data(x_MK), k, Data(w_NK), k, 0, Data(y_MN), n);
  }
  void DoLinearTransposedInputGradient(const Tensor& dy_MN, const Tensor& w_NK,
                                       const Tensor& dx_MK) override {
    const auto [m, k, n] = MatmulOf(dx_MK, dy_MN);
    gemm_.Run(kPlain, kPlain, m, k, n, 1, Data(dy_MN), n, Data(w_NK), k, 0, Data(dx_MK), k);
  }
  void DoLinearTransposedWeightGradient(const Tensor& x_MK, const Tensor& dy_MN,
                                        const Tensor& dw_NK) override {
    const auto [m, k, n] = MatmulOf(x_MK, dy_MN);
    gemm_.Run(kTransposed, kPlain, n, k, m, 1, Data(dy_MN), n, Data(x_MK), k, 1, Data(dw_NK), k);
  }

  void DoLayerNorm(const Tensor& x_MC, const Tensor& gamma_C, const Tensor& beta_C,
                   const Tensor& y_MC, const Tensor& mean_M, const Tensor& rstd_M) override {
    const auto [m, c] = RowsOf(x_MC);
    if (mean_M.empty()) {
      cpu::RmsNormForward(Data(x_MC), Data(gamma_C), m, c, Data(y_MC), Data(rstd_M));
      return;
    }
    cpu::LayerNormForward(Data(x_MC), Data(gamma_C), Data(beta_C), m, c, Data(y_MC), Data(mean_M),
                          Data(rstd_M));
  }
  void DoLayerNormInputGradient(const Tensor& dy_MC, const Tensor& x_MC, const Tensor& gamma_C,
                                const Tensor& mean_M, const Tensor& rstd_M,
                                const Tensor& dx_MC) override {
    const auto [m, c] = RowsOf(dy_MC);
    if (mean_M.empty()) {
      cpu::RmsNormBackward(Data(dy_MC), Data(x_MC), Data(gamma_C), Data(rstd_M), m, c, Data(dx_MC));
      return;
    }
    cpu::LayerNormBackward(Data(dy_MC), Data(x_MC), Data(gamma_C), Data(mean_M), Data(rstd_M), m, c,
                           Data(dx_MC));
  }
  void DoLayerNormWeightGradient(const Tensor& dy_MC, const Tensor& x_MC, const Tensor& mean_M,
                                 const Tensor& rstd_M, const Tensor& dgamma_C,
                                 const Tensor& dbeta_C) override {
    const auto [m, c] = RowsOf(dy_MC);
    if (mean_M.empty()) {
      cpu::RmsNormWeights(Data(dy_MC), Data(x_MC), Data(rstd_M), m, c, Data(dgamma_C));
      return;
    }
    cpu::LayerNormWeights(Data(dy_MC), Data(x_MC), Data(mean_M), Data(rstd_M), m, c, Data(dgamma_C),
                          Data(dbeta_C));
  }

  void DoGelu(const Tensor& x, const Tensor& y, GeluForm form) override {
    const auto forward = form == GeluForm::kErf ? cpu::ExactGeluForward : cpu::GeluForward;
    forward(Data(x), x.size(), Data(y));
  }
  void DoGeluGradient(const Tensor& dy, const Tensor& x, const Tensor& dx, GeluForm form) override {
    const auto backward = form == GeluForm::kErf ? cpu::ExactGeluBackward : cpu::GeluBackward;
    backward(Data(dy), Data(x), dy.size(), Data(dx));
  }

  void DoGate(GateKind kind, const Tensor& gu_M2F, const Tensor& y_MF) override {
    const auto [m, f] = RowsOf(y_MF);
    cpu::GateForward(kind, Data(gu_M2F), m, f, Data(y_MF));
  }
  void DoGateGradient(GateKind kind, const Tensor& dy_MF, const Tensor& gu_M2F,
                      const Tensor& dgu_M2F) override {
    const auto [m, f] = RowsOf(dy_MF);
    cpu::GateBackward(kind, Data(dy_MF), Data(gu_M2F), m, f, Data(dgu_M2F));
  }

  void DoRelu(const Tensor& x, const Tensor& y) override {
    team_.Run(x.size(), kNumbersPerPart, [&](int64_t begin, int64_t end) {
      cpu::ReluForward(Data(x) + begin, end - begin, Data(y) + begin);
    });
  }
  void DoReluGradient(const Tensor& dy, const Tensor& y, const Tensor& dx) override {
    team_.Run(dy.size(), kNumbersPerPart, [&](int64_t begin, int64_t end) {
      cpu::ReluBackward(Data(dy) + begin, Data(y) + begin, end - begin, Data(dx) + begin);
    });
  }

  void DoAddDropout(const Tensor& a, const Tensor& b, const DropoutMask& mask,
                    const Tensor& y) override {
    const int64_t n = a.size();
    if (mask.rate == 0) {
      cpu::AddVectors(Data(a), Data(b), n, Data(y));
    } else {
      cpu::DropoutForward(Data(a), Data(b), mask, n, Data(y));
    }
  }
  void DoDropout(const Tensor& x, const DropoutMask& mask, const Tensor& y) override {
    const int64_t n = x.size();
    if (mask.rate == 0) {
      Copy(x, y);
    } else {
      cpu::DropoutForward(nullptr, Data(x), mask, n, Data(y));
    }
  }
  void DoAdd(const Tensor& a, const Tensor& b, const Tensor& y) override {
    team_.Run(a.size(), kNumbersPerPart, [&](int64_t begin, int64_t end) {
      cpu::AddVectors(Data(a) + begin, Data(b) + begin, end - begin, Data(y) + begin);
    });
  }

  void Fill(const Tensor& x, float value) override { std::fill_n(Data(x), x.size(), value); }
  void DoCopy(const Tensor& from, const Tensor& to) override {
    const int64_t n = from.size();
    if (n > 0) std::memmove(Data(to), Data(from), n * sizeof(float));
  }
  void DoCopyColumns(const Tensor& from_MC, int64_t from_column, const Tensor& to_MD,
                     int64_t to_column, int64_t columns) override {
    const int64_t m = RowsOf(from_MC).rows;
    const int64_t from_width = RowsOf(from_MC).columns, to_width = RowsOf(to_MD).columns;
    const float* from = Data(from_MC) + from_column;
    float* to = Data(to_MD) + to_column;
    for (int64_t i = 0; i < m; ++i, from += from_width, to += to_width) {
      std::copy_n(from, columns, to);
    }
  }

 private:
  cpu::Team team_;
  cpu::LibraryClock clock_;
  cpu::Sgemm gemm_{&team_, &clock_};
  const std::unique_ptr<AttentionKernels> attention_ = cpu::MakeAttentionKernels(&arena(), &gemm_);
  const std::unique_ptr<BatchNormKernels> batch_norm_ = cpu::MakeBatchNormKernels();
  const std::unique_ptr<ConvolutionKernels> convolution_ =
      cpu::MakeConvolutionKernels(&arena(), &clock_);
  const std::unique_ptr<EmbeddingKernels> embedding_ = cpu::MakeEmbeddingKernels();
  const std::unique_ptr<ExpertKernels> experts_ = cpu::MakeExpertKernels(&gemm_);
  const std::unique_ptr<GraphKernels> graphs_ = cpu::MakeGraphKernels(&team_);
  const std::unique_ptr<LossKernels> loss_ = cpu::MakeLossKernels();
  const std::unique_ptr<OptimizerKernels> optimizer_ = cpu::MakeOptimizerKernels();
  const std::unique_ptr<PoolingKernels> pooling_ = cpu::MakePoolingKernels();
  const std::unique_ptr<QuantizedKernels> quantized_ = cpu::MakeQuantizedKernels();
};

}  // namespace

std::unique_ptr<Backend> MakeCpuBackend(Arena* arena) { return MakeThreadedCpuBackend(arena, 1); }

std::unique_ptr<Backend> MakeThreadedCpuBackend(Arena* arena, int threads) {
  return std::make_unique<CpuBackend>(arena, threads);
}

}  // namespace pipelab
