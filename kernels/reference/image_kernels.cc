// Pooling and batch normalisation.
#include <memory>

#include "kernels/reference/functions.h"
#include "kernels/reference/groups.h"
#include "kernels/reference/wide.h"
#include "kernels/shape_checks.h"

namespace pipelab {
namespace reference {
namespace {

class ReferencePoolingKernels final : public PoolingKernels {
 public:
  void DoMax(const PoolingShape& shape, const Tensor& x_NHWC, const Tensor& y_NHWC) override {
    MaxPool(shape, Wide(x_NHWC), WideResult(y_NHWC));
  }
  void DoMaxGradient(const PoolingShape& shape, const Tensor& dy_NHWC, const Tensor& x_NHWC,
                     const Tensor& dx_NHWC) override {
    MaxPoolGradient(shape, Wide(dy_NHWC), Wide(x_NHWC), WideResult(dx_NHWC));
  }
  void DoAverage(const PoolingShape& shape, const Tensor& x_NHWC, const Tensor& y_NHWC) override {
    AveragePool(shape, Wide(x_NHWC), WideResult(y_NHWC));
  }
  void DoAverageGradient(const PoolingShape& shape, const Tensor& dy_NHWC,
                         const Tensor& dx_NHWC) override {
    AveragePoolGradient(shape, Wide(dy_NHWC), WideResult(dx_NHWC));
  }
};

class ReferenceBatchNormKernels final : public BatchNormKernels {
 public:
  void DoForward(const Tensor& x_MC, const Tensor& gamma_C, const Tensor& beta_C,
                 const Tensor& y_MC, const Tensor& mean_C, const Tensor& variance_C) override {
    const RowsSize size = RowsOf(x_MC);
    BatchNorm(size, Wide(x_MC), Wide(gamma_C), Wide(beta_C), WideResult(y_MC), WideResult(mean_C),
              WideResult(variance_C));
  }
  void DoInputGradient(const Tensor& dy_MC, const Tensor& x_MC, const Tensor& gamma_C,
                       const Tensor& mean_C, const Tensor& variance_C, const Tensor& dx_MC,
                       const Tensor& dgamma_part_C, const Tensor& dbeta_part_C) override {
    const RowsSize size = RowsOf(dy_MC);
    BatchNormInputGradient(size, Wide(dy_MC), Wide(x_MC), Wide(gamma_C), Wide(mean_C),
                           Wide(variance_C), WideResult(dx_MC), WideResult(dgamma_part_C),
                           WideResult(dbeta_part_C));
  }
  void DoStatistics(const Tensor& x_MC, const Tensor& mean_C, const Tensor& variance_C) override {
    const RowsSize size = RowsOf(x_MC);
    BatchNormStatistics(size, Wide(x_MC), WideResult(mean_C), WideResult(variance_C));
  }
  void DoGradientSums(const Tensor& dy_MC, const Tensor& x_MC, const Tensor& mean_C,
                      const Tensor& variance_C, const Tensor& dgamma_part_C,
                      const Tensor& dbeta_part_C) override {
    const RowsSize size = RowsOf(dy_MC);
    BatchNormGradientSums(size, Wide(dy_MC), Wide(x_MC), Wide(mean_C), Wide(variance_C),
                          WideResult(dgamma_part_C), WideResult(dbeta_part_C));
  }
  void DoInputGradientOfSums(const Tensor& dy_MC, const Tensor& x_MC, const Tensor& gamma_C,
                             const Tensor& mean_C, const Tensor& variance_C, const RowSums& sums,
                             const Tensor& dx_MC) override {
    const RowsSize size = RowsOf(dy_MC);
    BatchNormInputGradientOfSums(size, Wide(dy_MC), Wide(x_MC), Wide(gamma_C), Wide(mean_C),
                                 Wide(variance_C), Wide(sums.dgamma_C), Wide(sums.dbeta_C),
                                 sums.rows, WideResult(dx_MC));
  }
  void DoWeightGradient(const Tensor& dgamma_part_C, const Tensor& dbeta_part_C,
                        const Tensor& dgamma_C, const Tensor& dbeta_C) override {
    for (int64_t j = 0; j < dgamma_C.size(); ++j) {
      dgamma_C.f32()[j] += dgamma_part_C.f32()[j];
      dbeta_C.f32()[j] += dbeta_part_C.f32()[j];
    }
  }
  void DoInference(const Tensor& x_MC, const Tensor& gamma_C, const Tensor& beta_C,
                   const Tensor& mean_C, const Tensor& variance_C, const Tensor& y_MC) override {
    const RowsSize size = RowsOf(x_MC);
    BatchNormInference(size, Wide(x_MC), Wide(gamma_C), Wide(beta_C), Wide(mean_C),
                       Wide(variance_C), WideResult(y_MC));
  }
  void DoUpdateRunning(const Tensor& statistics_B2C, absl::Span<const int64_t> rows_B,
                       float momentum, const Tensor& running_mean_C,
                       const Tensor& running_variance_C) override {
    const int64_t micro_batches = RowsOf(statistics_B2C).rows;
    BatchNormUpdateRunning(micro_batches, Wide(statistics_B2C), rows_B, momentum,
                           WideResult(running_mean_C), WideResult(running_variance_C));
  }
};

}  // namespace

std::unique_ptr<PoolingKernels> MakePoolingKernels() {
  return std::make_unique<ReferencePoolingKernels>();
}
std::unique_ptr<BatchNormKernels> MakeBatchNormKernels() {
  return std::make_unique<ReferenceBatchNormKernels>();
}

}  // namespace reference
}  // namespace pipelab
