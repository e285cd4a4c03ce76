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
  void Max(const PoolingShape& shape, const Tensor& x_NHWC, const Tensor& y_NHWC) override {
    CheckPooling("MaxPool", shape, {&x_NHWC}, {&y_NHWC});
    MaxPool(shape, Wide(x_NHWC), WideResult(y_NHWC));
  }
  void MaxGradient(const PoolingShape& shape, const Tensor& dy_NHWC, const Tensor& x_NHWC,
                   const Tensor& dx_NHWC) override {
    CheckPooling("MaxPoolGradient", shape, {&x_NHWC, &dx_NHWC}, {&dy_NHWC});
    MaxPoolGradient(shape, Wide(dy_NHWC), Wide(x_NHWC), WideResult(dx_NHWC));
  }
  void Average(const PoolingShape& shape, const Tensor& x_NHWC, const Tensor& y_NHWC) override {
    CheckPooling("AveragePool", shape, {&x_NHWC}, {&y_NHWC});
    AveragePool(shape, Wide(x_NHWC), WideResult(y_NHWC));
  }
  void AverageGradient(const PoolingShape& shape, const Tensor& dy_NHWC,
                       const Tensor& dx_NHWC) override {
    CheckPooling("AveragePoolGradient", shape, {&dx_NHWC}, {&dy_NHWC});
    AveragePoolGradient(shape, Wide(dy_NHWC), WideResult(dx_NHWC));
  }
};

class ReferenceBatchNormKernels final : public BatchNormKernels {
 public:
  void Forward(const Tensor& x_MC, const Tensor& gamma_C, const Tensor& beta_C, const Tensor& y_MC,
               const Tensor& mean_C, const Tensor& variance_C) override {
    const RowsSize size =
        CheckBatchNorm("BatchNorm", {&x_MC, &y_MC}, {&gamma_C, &beta_C, &mean_C, &variance_C});
    BatchNorm(size, Wide(x_MC), Wide(gamma_C), Wide(beta_C), WideResult(y_MC), WideResult(mean_C),
              WideResult(variance_C));
  }
  void InputGradient(const Tensor& dy_MC, const Tensor& x_MC, const Tensor& gamma_C,
                     const Tensor& mean_C, const Tensor& variance_C, const Tensor& dx_MC,
                     const Tensor& dgamma_part_C, const Tensor& dbeta_part_C) override {
    const RowsSize size =
        CheckBatchNorm("BatchNormInputGradient", {&dy_MC, &x_MC, &dx_MC},
                       {&gamma_C, &mean_C, &variance_C, &dgamma_part_C, &dbeta_part_C});
    BatchNormInputGradient(size, Wide(dy_MC), Wide(x_MC), Wide(gamma_C), Wide(mean_C),
                           Wide(variance_C), WideResult(dx_MC), WideResult(dgamma_part_C),
                           WideResult(dbeta_part_C));
  }
  void Statistics(const Tensor& x_MC, const Tensor& mean_C, const Tensor& variance_C) override {
    const RowsSize size = CheckBatchNorm("BatchNormStatistics", {&x_MC}, {&mean_C, &variance_C});
    BatchNormStatistics(size, Wide(x_MC), WideResult(mean_C), WideResult(variance_C));
  }
  void GradientSums(const Tensor& dy_MC, const Tensor& x_MC, const Tensor& mean_C,
                    const Tensor& variance_C, const Tensor& dgamma_part_C,
                    const Tensor& dbeta_part_C) override {
    const RowsSize size = CheckBatchNorm("BatchNormGradientSums", {&dy_MC, &x_MC},
                                         {&mean_C, &variance_C, &dgamma_part_C, &dbeta_part_C});
    BatchNormGradientSums(size, Wide(dy_MC), Wide(x_MC), Wide(mean_C), Wide(variance_C),
                          WideResult(dgamma_part_C), WideResult(dbeta_part_C));
  }
  void InputGradientOfSums(const Tensor& dy_MC, const Tensor& x_MC, const Tensor& gamma_C,
                           const Tensor& mean_C, const Tensor& variance_C, const RowSums& sums,
                           const Tensor& dx_MC) override {
    const RowsSize size =
        CheckBatchNorm("BatchNormInputGradientOfSums", {&dy_MC, &x_MC, &dx_MC},
                       {&gamma_C, &mean_C, &variance_C, &sums.dgamma_C, &sums.dbeta_C});
    BatchNormInputGradientOfSums(size, Wide(dy_MC), Wide(x_MC), Wide(gamma_C), Wide(mean_C),
                                 Wide(variance_C), Wide(sums.dgamma_C), Wide(sums.dbeta_C),
                                 sums.rows, WideResult(dx_MC));
  }
  void WeightGradient(const Tensor& dgamma_part_C, const Tensor& dbeta_part_C,
                      const Tensor& dgamma_C, const Tensor& dbeta_C) override {
    CheckSameSize("BatchNormWeightGradient", {&dgamma_part_C, &dbeta_part_C, &dgamma_C, &dbeta_C});
    for (int64_t j = 0; j < dgamma_C.size(); ++j) {
      dgamma_C.f32()[j] += dgamma_part_C.f32()[j];
      dbeta_C.f32()[j] += dbeta_part_C.f32()[j];
    }
  }
  void Inference(const Tensor& x_MC, const Tensor& gamma_C, const Tensor& beta_C,
                 const Tensor& mean_C, const Tensor& variance_C, const Tensor& y_MC) override {
    const RowsSize size = CheckBatchNorm("BatchNormInference", {&x_MC, &y_MC},
                                         {&gamma_C, &beta_C, &mean_C, &variance_C});
    BatchNormInference(size, Wide(x_MC), Wide(gamma_C), Wide(beta_C), Wide(mean_C),
                       Wide(variance_C), WideResult(y_MC));
  }
  void UpdateRunning(const Tensor& statistics_B2C, absl::Span<const int64_t> rows_B, float momentum,
                     const Tensor& running_mean_C, const Tensor& running_variance_C) override {
    const int64_t micro_batches =
        CheckRunningStatistics(statistics_B2C, rows_B, running_mean_C, running_variance_C);
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
