// Pooling and batch normalisation.
#include <memory>

#include "kernels/cpu/batch_norm.h"
#include "kernels/cpu/elementwise.h"
#include "kernels/cpu/groups.h"
#include "kernels/cpu/pooling.h"
#include "kernels/shape_checks.h"

namespace pipelab {
namespace cpu {
namespace {

class CpuPoolingKernels final : public PoolingKernels {
 public:
  void DoMax(const PoolingShape& shape, const Tensor& x_NHWC, const Tensor& y_NHWC) override {
    MaxPoolForward(shape, Data(x_NHWC), Data(y_NHWC));
  }
  void DoMaxGradient(const PoolingShape& shape, const Tensor& dy_NHWC, const Tensor& x_NHWC,
                     const Tensor& dx_NHWC) override {
    MaxPoolBackward(shape, Data(dy_NHWC), Data(x_NHWC), Data(dx_NHWC));
  }
  void DoAverage(const PoolingShape& shape, const Tensor& x_NHWC, const Tensor& y_NHWC) override {
    AveragePoolForward(shape, Data(x_NHWC), Data(y_NHWC));
  }
  void DoAverageGradient(const PoolingShape& shape, const Tensor& dy_NHWC,
                         const Tensor& dx_NHWC) override {
    AveragePoolBackward(shape, Data(dy_NHWC), Data(dx_NHWC));
  }
};

class CpuBatchNormKernels final : public BatchNormKernels {
 public:
  void DoForward(const Tensor& x_MC, const Tensor& gamma_C, const Tensor& beta_C,
                 const Tensor& y_MC, const Tensor& mean_C, const Tensor& variance_C) override {
    const auto [m, c] = RowsOf(x_MC);
    BatchNormStatistics(Data(x_MC), m, c, Data(mean_C), Data(variance_C));
    BatchNormApply(Data(x_MC), Data(gamma_C), Data(beta_C), Data(mean_C), Data(variance_C), m, c,
                   Data(y_MC));
  }
  void DoInputGradient(const Tensor& dy_MC, const Tensor& x_MC, const Tensor& gamma_C,
                       const Tensor& mean_C, const Tensor& variance_C, const Tensor& dx_MC,
                       const Tensor& dgamma_part_C, const Tensor& dbeta_part_C) override {
    const auto [m, c] = RowsOf(dy_MC);
    BatchNormSums(Data(dy_MC), Data(x_MC), Data(mean_C), Data(variance_C), m, c,
                  Data(dgamma_part_C), Data(dbeta_part_C));
    BatchNormBackward(Data(dy_MC), Data(x_MC), Data(gamma_C), Data(mean_C), Data(variance_C),
                      Data(dgamma_part_C), Data(dbeta_part_C), m, m, c, Data(dx_MC));
  }
  void DoStatistics(const Tensor& x_MC, const Tensor& mean_C, const Tensor& variance_C) override {
    const auto [m, c] = RowsOf(x_MC);
    BatchNormStatistics(Data(x_MC), m, c, Data(mean_C), Data(variance_C));
  }
  void DoGradientSums(const Tensor& dy_MC, const Tensor& x_MC, const Tensor& mean_C,
                      const Tensor& variance_C, const Tensor& dgamma_part_C,
                      const Tensor& dbeta_part_C) override {
    const auto [m, c] = RowsOf(dy_MC);
    BatchNormSums(Data(dy_MC), Data(x_MC), Data(mean_C), Data(variance_C), m, c,
                  Data(dgamma_part_C), Data(dbeta_part_C));
  }
  void DoInputGradientOfSums(const Tensor& dy_MC, const Tensor& x_MC, const Tensor& gamma_C,
                             const Tensor& mean_C, const Tensor& variance_C, const RowSums& sums,
                             const Tensor& dx_MC) override {
    const auto [m, c] = RowsOf(dy_MC);
    BatchNormBackward(Data(dy_MC), Data(x_MC), Data(gamma_C), Data(mean_C), Data(variance_C),
                      Data(sums.dgamma_C), Data(sums.dbeta_C), sums.rows, m, c, Data(dx_MC));
  }
  void DoWeightGradient(const Tensor& dgamma_part_C, const Tensor& dbeta_part_C,
                        const Tensor& dgamma_C, const Tensor& dbeta_C) override {
    const int64_t c = dgamma_part_C.size();
    AddVectors(Data(dgamma_C), Data(dgamma_part_C), c, Data(dgamma_C));
    AddVectors(Data(dbeta_C), Data(dbeta_part_C), c, Data(dbeta_C));
  }
  void DoInference(const Tensor& x_MC, const Tensor& gamma_C, const Tensor& beta_C,
                   const Tensor& mean_C, const Tensor& variance_C, const Tensor& y_MC) override {
    const auto [m, c] = RowsOf(x_MC);
    BatchNormApply(Data(x_MC), Data(gamma_C), Data(beta_C), Data(mean_C), Data(variance_C), m, c,
                   Data(y_MC));
  }
  void DoUpdateRunning(const Tensor& statistics_B2C, absl::Span<const int64_t> rows_B,
                       float momentum, const Tensor& running_mean_C,
                       const Tensor& running_variance_C) override {
    const int64_t micro_batches = RowsOf(statistics_B2C).rows;
    BatchNormUpdateRunning(Data(statistics_B2C), micro_batches, rows_B, running_mean_C.size(),
                           momentum, Data(running_mean_C), Data(running_variance_C));
  }
};

}  // namespace

std::unique_ptr<PoolingKernels> MakePoolingKernels() {
  return std::make_unique<CpuPoolingKernels>();
}
std::unique_ptr<BatchNormKernels> MakeBatchNormKernels() {
  return std::make_unique<CpuBatchNormKernels>();
}

}  // namespace cpu
}  // namespace pipelab
