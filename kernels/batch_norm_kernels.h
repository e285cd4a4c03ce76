// Batch normalisation with GPipe's semantics: training normalises by the statistics of the
// micro-batch, evaluation by running statistics of whole mini-batches.
//
//   BatchNormKernels& k = backend->batch_norm();
//   k.Forward(x_MC, gamma_C, beta_C, y_MC, mean_C, variance_C);
//   k.InputGradient(dy_MC, x_MC, gamma_C, mean_C, variance_C, dx_MC, dgamma_part_C, dbeta_part_C);
//   k.WeightGradient(dgamma_part_C, dbeta_part_C, dgamma_C, dbeta_C);
//   k.UpdateRunning(statistics_of_micro_batches, /*rows_B=*/{}, 0.1f, running_mean, running_var);
//   k.Inference(x_MC, gamma_C, beta_C, running_mean, running_var, y_MC);
//
// M is samples times pixels. Paper: GPipe (Huang et al. 2019), section 2.2: "sufficient statistics
// of inputs at each batch normalization layer are computed over each micro-batch, with a moving
// average over the entire mini-batch for evaluation".
//
// The running statistics do not depend on the schedule: a stage keeps each micro-batch's mean and
// variance in a slot of its own, and the step combines the slots in the order of micro-batches,
// whatever the order in which they were computed (once or, when recomputing, twice).
//
// The CPU backend has loops of its own: measured on three micro-batches of AmoebaNets, 1.1 to 2.2
// times as fast as oneDNN's, which also has no input gradient without the weight gradient's sums.
#ifndef PIPELAB_KERNELS_BATCH_NORM_KERNELS_H_
#define PIPELAB_KERNELS_BATCH_NORM_KERNELS_H_

#include <cstdint>

#include "absl/types/span.h"
#include "kernels/shape_checks.h"
#include "kernels/tensor/tensor.h"

namespace pipelab {

inline constexpr double kBatchNormEpsilon = 1e-5;

class BatchNormKernels {
 public:
  virtual ~BatchNormKernels() = default;

  // y = gamma (x - mean) / sqrt(variance + epsilon) + beta with the column statistics of x, which
  // it writes: the variance is the mean square around the mean (divided by M). y may be x only
  // where no gradient follows.
  void Forward(const Tensor& x_MC, const Tensor& gamma_C, const Tensor& beta_C, const Tensor& y_MC,
               const Tensor& mean_C, const Tensor& variance_C) {
    CheckBatchNorm("BatchNorm", {&x_MC, &y_MC}, {&gamma_C, &beta_C, &mean_C, &variance_C});
    DoForward(x_MC, gamma_C, beta_C, y_MC, mean_C, variance_C);
  }
  // The gradient through the statistics too. It needs the sums over M that gamma and beta want, and
  // writes them, so that the weight gradient needs neither x nor dy. dx may be dy.
  void InputGradient(const Tensor& dy_MC, const Tensor& x_MC, const Tensor& gamma_C,
                     const Tensor& mean_C, const Tensor& variance_C, const Tensor& dx_MC,
                     const Tensor& dgamma_part_C, const Tensor& dbeta_part_C) {
    CheckBatchNorm("BatchNormInputGradient", {&dy_MC, &x_MC, &dx_MC},
                   {&gamma_C, &mean_C, &variance_C, &dgamma_part_C, &dbeta_part_C});
    DoInputGradient(dy_MC, x_MC, gamma_C, mean_C, variance_C, dx_MC, dgamma_part_C, dbeta_part_C);
  }

  // The same in parts, for rows that several devices have: the caller puts the statistics, and the
  // sums, of all of them together in between. Forward is Statistics, and Inference with those of
  // all rows; InputGradient is GradientSums, and InputGradientOfSums with the sums over all `rows`
  // rows, of which these are some.
  void Statistics(const Tensor& x_MC, const Tensor& mean_C, const Tensor& variance_C) {
    CheckBatchNorm("BatchNormStatistics", {&x_MC}, {&mean_C, &variance_C});
    DoStatistics(x_MC, mean_C, variance_C);
  }
  void GradientSums(const Tensor& dy_MC, const Tensor& x_MC, const Tensor& mean_C,
                    const Tensor& variance_C, const Tensor& dgamma_part_C,
                    const Tensor& dbeta_part_C) {
    CheckBatchNorm("BatchNormGradientSums", {&dy_MC, &x_MC},
                   {&mean_C, &variance_C, &dgamma_part_C, &dbeta_part_C});
    DoGradientSums(dy_MC, x_MC, mean_C, variance_C, dgamma_part_C, dbeta_part_C);
  }
  struct RowSums {
    Tensor dgamma_C, dbeta_C;
    int64_t rows = 0;
  };
  // dx may be dy.
  void InputGradientOfSums(const Tensor& dy_MC, const Tensor& x_MC, const Tensor& gamma_C,
                           const Tensor& mean_C, const Tensor& variance_C, const RowSums& sums,
                           const Tensor& dx_MC) {
    CheckBatchNorm("BatchNormInputGradientOfSums", {&dy_MC, &x_MC, &dx_MC},
                   {&gamma_C, &mean_C, &variance_C, &sums.dgamma_C, &sums.dbeta_C});
    DoInputGradientOfSums(dy_MC, x_MC, gamma_C, mean_C, variance_C, sums, dx_MC);
  }

  // Adds the parts to dgamma and dbeta.
  void WeightGradient(const Tensor& dgamma_part_C, const Tensor& dbeta_part_C,
                      const Tensor& dgamma_C, const Tensor& dbeta_C) {
    CheckSameSize("BatchNormWeightGradient", {&dgamma_part_C, &dbeta_part_C, &dgamma_C, &dbeta_C});
    DoWeightGradient(dgamma_part_C, dbeta_part_C, dgamma_C, dbeta_C);
  }

  // With given statistics. y may be x.
  void Inference(const Tensor& x_MC, const Tensor& gamma_C, const Tensor& beta_C,
                 const Tensor& mean_C, const Tensor& variance_C, const Tensor& y_MC) {
    CheckBatchNorm("BatchNormInference", {&x_MC, &y_MC}, {&gamma_C, &beta_C, &mean_C, &variance_C});
    DoInference(x_MC, gamma_C, beta_C, mean_C, variance_C, y_MC);
  }
  // running = (1 - momentum) running + momentum mini-batch, where the mini-batch's mean and
  // variance are those of the union of its micro-batches: a row [mean_C, variance_C] each, over
  // rows_B[b] values (empty: equally many). The variance is the mean of the variances plus the
  // variance of the means; it is the one that divides by the number of values, as torchgpipe's
  // DeferredBatchNorm (PyTorch's own BatchNorm divides by one less).
  void UpdateRunning(const Tensor& statistics_B2C, absl::Span<const int64_t> rows_B, float momentum,
                     const Tensor& running_mean_C, const Tensor& running_variance_C) {
    CheckRunningStatistics(statistics_B2C, rows_B, running_mean_C, running_variance_C);
    DoUpdateRunning(statistics_B2C, rows_B, momentum, running_mean_C, running_variance_C);
  }

 private:
  // What a backend does, once the shapes are checked.
  virtual void DoForward(const Tensor& x_MC, const Tensor& gamma_C, const Tensor& beta_C,
                         const Tensor& y_MC, const Tensor& mean_C, const Tensor& variance_C) = 0;
  virtual void DoInputGradient(const Tensor& dy_MC, const Tensor& x_MC, const Tensor& gamma_C,
                               const Tensor& mean_C, const Tensor& variance_C, const Tensor& dx_MC,
                               const Tensor& dgamma_part_C, const Tensor& dbeta_part_C) = 0;
  virtual void DoStatistics(const Tensor& x_MC, const Tensor& mean_C, const Tensor& variance_C) = 0;
  virtual void DoGradientSums(const Tensor& dy_MC, const Tensor& x_MC, const Tensor& mean_C,
                              const Tensor& variance_C, const Tensor& dgamma_part_C,
                              const Tensor& dbeta_part_C) = 0;
  virtual void DoInputGradientOfSums(const Tensor& dy_MC, const Tensor& x_MC, const Tensor& gamma_C,
                                     const Tensor& mean_C, const Tensor& variance_C,
                                     const RowSums& sums, const Tensor& dx_MC) = 0;
  virtual void DoWeightGradient(const Tensor& dgamma_part_C, const Tensor& dbeta_part_C,
                                const Tensor& dgamma_C, const Tensor& dbeta_C) = 0;
  virtual void DoInference(const Tensor& x_MC, const Tensor& gamma_C, const Tensor& beta_C,
                           const Tensor& mean_C, const Tensor& variance_C, const Tensor& y_MC) = 0;
  virtual void DoUpdateRunning(const Tensor& statistics_B2C, absl::Span<const int64_t> rows_B,
                               float momentum, const Tensor& running_mean_C,
                               const Tensor& running_variance_C) = 0;
};

}  // namespace pipelab

#endif  // PIPELAB_KERNELS_BATCH_NORM_KERNELS_H_
