// Batch normalisation inside a layer, with GPipe's semantics: a micro-batch's own statistics in
// training, running ones in evaluation (kernels/batch_norm_kernels.h).
//
//   y_MC = norm_.Forward(ctx, x_MC, gamma, beta, statistics_, &mean_C, &variance_C);
//   norm_.InputGradient(ctx, dy_MC, x_MC, gamma, mean_C, variance_C, &parts);     // dy becomes dx
//   norm_.WeightGradient(ctx, parts, gamma, beta);
//   norm_.EndStep(backend, statistics_);
//
// The running statistics do not depend on the schedule: each backward notes its micro-batch's mean
// and variance under its first sample, and the end of the step combines them in that order. These
// notes (8 bytes a channel and micro-batch, until the step) lie in plain memory that no arena
// counts. Replicas of a stage have running statistics of their own micro-batches.
//
// Where several devices have rows of a micro-batch (LayerContext::copies), they normalise by the
// statistics of all rows, which every one puts together from everybody's in the order of devices,
// in double: all have the same bits, and the same running statistics. The parameters' gradients
// stay those of the own rows, which the stage sums as all others. Without `copies` a device has
// the statistics of its own rows, running ones too; norm_parts is that on one device, whose running
// statistics are the first part's.
#ifndef PIPELAB_MODELS_LAYERS_MICRO_BATCH_NORM_H_
#define PIPELAB_MODELS_LAYERS_MICRO_BATCH_NORM_H_

#include <cstdint>
#include <map>
#include <vector>

#include "models/layers/layer.h"

namespace pipelab {

// Weight of a step's statistics in the running ones, PyTorch's.
inline constexpr float kBatchNormMomentum = 0.1f;

class MicroBatchNorm {
 public:
  // In training a new tensor, and the statistics; in evaluation x itself, written over.
  // `running` has mean and variance.
  Tensor Forward(const LayerContext& ctx, const Tensor& x_MC, const Parameter& gamma,
                 const Parameter& beta, const std::vector<Tensor>& running, Tensor* mean_C,
                 Tensor* variance_C) const;
  // Writes the input's gradient over dy. Appends the parts of gamma's and beta's gradients, 2 [C].
  void InputGradient(const LayerContext& ctx, const Tensor& dy_MC, const Tensor& x_MC,
                     const Parameter& gamma, const Tensor& mean_C, const Tensor& variance_C,
                     std::vector<Tensor>* parts);
  static void WeightGradient(const LayerContext& ctx, const Tensor& dgamma_part_C,
                             const Tensor& dbeta_part_C, const Parameter& gamma,
                             const Parameter& beta);
  // Micro-batches whose backward has been since the last step. None: nothing changes.
  void EndStep(Backend* backend, const std::vector<Tensor>& running);

 private:
  // A row of [parts, C], or a vector [C] of one part.
  static Tensor PartOf(const Tensor& statistics, int64_t part) {
    return statistics.shape().size() == 1 ? statistics : statistics.Rows(part, part + 1);
  }
  static void StatisticsOfAll(const LayerContext& ctx, const Tensor& x_MC, const Tensor& mean_C,
                              const Tensor& variance_C);
  static void GradientOfAll(const LayerContext& ctx, const Tensor& dy_MC, const Tensor& x_MC,
                            const Parameter& gamma, const Tensor& mean_C, const Tensor& variance_C,
                            const Tensor& dgamma_part_C, const Tensor& dbeta_part_C);

  struct Statistics {
    int64_t rows = 0;  // over which they are
    std::vector<float> mean_and_variance;
  };
  std::map<int64_t, Statistics> seen_;  // by first sample: mean, then variance
};

}  // namespace pipelab

#endif  // PIPELAB_MODELS_LAYERS_MICRO_BATCH_NORM_H_
