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
  void Max(const PoolingShape& shape, const Tensor& x_NHWC, const Tensor& y_NHWC) override {
    CheckPooling("MaxPool", shape, {&x_NHWC}, {&y_NHWC});
    MaxPoolForward(shape, Data(x_NHWC), Data(y_NHWC));
  }
  void MaxGradient(const PoolingShape& shape, const Tensor& dy_NHWC, const Tensor& x_NHWC,
                   const Tensor& dx_NHWC) override {
    CheckPooling("MaxPoolGradient", shape, {&x_NHWC, &dx_NHWC}, {&dy_NHWC});
    MaxPoolBackward(shape, Data(dy_NHWC), Data(x_NHWC), Data(dx_NHWC));
  }
  void Average(const PoolingShape& shape, const Tensor& x_NHWC, const Tensor& y_NHWC) override {
    CheckPooling("AveragePool", shape, {&x_NHWC}, {&y_NHWC});
    AveragePoolForward(shape, Data(x_NHWC), Data(y_NHWC));
  }
  void AverageGradient(const PoolingShape& shape, const Tensor& dy_NHWC,
                       const Tensor& dx_NHWC) override {
    CheckPooling("AveragePoolGradient", shape, {&dx_NHWC}, {&dy_NHWC});
    AveragePoolBackward(shape, Data(dy_NHWC), Data(dx_NHWC));
  }
};

class CpuBatchNormKernels final : public BatchNormKernels {
 public:
  void Forward(const Tensor& x_MC, const Tensor& gamma_C, const Tensor& beta_C, const Tensor& y_MC,
               const Tensor& mean_C, const Tensor& variance_C) override {
    const auto [m, c] =
        CheckBatchNorm("BatchNorm", {&x_MC, &y_MC}, {&gamma_C, &beta_C, &mean_C, &variance_C});
    BatchNormStatistics(Data(x_MC), m, c, Data(mean_C), Data(variance_C));
    BatchNormApply(Data(x_MC), Data(gamma_C), Data(beta_C), Data(mean_C), Data(variance_C), m, c,
                   Data(y_MC));
  }
  void InputGradient(const Tensor& dy_MC, const Tensor& x_MC, const Tensor& gamma_C,
                     const Tensor& mean_C, const Tensor& variance_C, const Tensor& dx_MC,
                     const Tensor& dgamma_part_C, const Tensor& dbeta_part_C) override {
    const auto [m, c] =
        CheckBatchNorm("BatchNormInputGradient", {&dy_MC, &x_MC, &dx_MC},
                       {&gamma_C, &mean_C, &variance_C, &dgamma_part_C, &dbeta_part_C});
    BatchNormSums(Data(dy_MC), Data(x_MC), Data(mean_C), Data(variance_C), m, c,
                  Data(dgamma_part_C), Data(dbeta_part_C));
    BatchNormBackward(Data(dy_MC), Data(x_MC), Data(gamma_C), Data(mean_C), Data(variance_C),
                      Data(dgamma_part_C), Data(dbeta_part_C), m, m, c, Data(dx_MC));
  }
  void Statistics(const Tensor& x_MC, const Tensor& mean_C, const Tensor& variance_C) override {
    const auto [m, c] = CheckBatchNorm("BatchNormStatistics", {&x_MC}, {&mean_C, &variance_C});
    BatchNormStatistics(Data(x_MC), m, c, Data(mean_C), Data(variance_C));
  }
  void GradientSums(const Tensor& dy_MC, const Tensor& x_MC, const Tensor& mean_C,
                    const Tensor& variance_C, const Tensor& dgamma_part_C,
                    const Tensor& dbeta_part_C) override {
    const auto [m, c] = CheckBatchNorm("BatchNormGradientSums", {&dy_MC, &x_MC},
                                       {&mean_C, &variance_C, &dgamma_part_C, &dbeta_part_C});
    BatchNormSums(Data(dy_MC), Data(x_MC), Data(mean_C), Data(variance_C), m, c,
                  Data(dgamma_part_C), Data(dbeta_part_C));
  }
  void InputGradientOfSums(const Tensor& dy_MC, const Tensor& x_MC, const Tensor& gamma_C,
                           const Tensor& mean_C, const Tensor& variance_C, const RowSums& sums,
                           const Tensor& dx_MC) override {
    const auto [m, c] =
        CheckBatchNorm("BatchNormInputGradientOfSums", {&dy_MC, &x_MC, &dx_MC},
                       {&gamma_C, &mean_C, &variance_C, &sums.dgamma_C, &sums.dbeta_C});
    BatchNormBackward(Data(dy_MC), Data(x_MC), Data(gamma_C), Data(mean_C), Data(variance_C),
                      Data(sums.dgamma_C), Data(sums.dbeta_C), sums.rows, m, c, Data(dx_MC));
  }
  void WeightGradient(const Tensor& dgamma_part_C, const Tensor& dbeta_part_C,
                      const Tensor& dgamma_C, const Tensor& dbeta_C) override {
    const int64_t c = CheckSameSize("BatchNormWeightGradient",
                                    {&dgamma_part_C, &dbeta_part_C, &dgamma_C, &dbeta_C});
    AddVectors(Data(dgamma_C), Data(dgamma_part_C), c, Data(dgamma_C));
    AddVectors(Data(dbeta_C), Data(dbeta_part_C), c, Data(dbeta_C));
  }
  void Inference(const Tensor& x_MC, const Tensor& gamma_C, const Tensor& beta_C,
                 const Tensor& mean_C, const Tensor& variance_C, const Tensor& y_MC) override {
    const auto [m, c] = CheckBatchNorm("BatchNormInference", {&x_MC, &y_MC},
                                       {&gamma_C, &beta_C, &mean_C, &variance_C});
    BatchNormApply(Data(x_MC), Data(gamma_C), Data(beta_C), Data(mean_C), Data(variance_C), m, c,
                   Data(y_MC));
  }
  void UpdateRunning(const Tensor& statistics_B2C, absl::Span<const int64_t> rows_B, float momentum,
                     const Tensor& running_mean_C, const Tensor& running_variance_C) override {
    const int64_t micro_batches =
        CheckRunningStatistics(statistics_B2C, rows_B, running_mean_C, running_variance_C);
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
