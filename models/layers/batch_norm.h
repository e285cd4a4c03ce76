// Runs what batch_norm_spec.h describes. x_MC, y_MC.
#ifndef PIPELAB_MODELS_LAYERS_BATCH_NORM_H_
#define PIPELAB_MODELS_LAYERS_BATCH_NORM_H_

#include "models/layers/layer.h"
#include "models/layers/micro_batch_norm.h"

namespace pipelab {

class BatchNorm : public UnaryLayer {
 public:
  explicit BatchNorm(const LayerSpec&) {}
  void EndStep(Backend* backend) override { norm_.EndStep(backend, statistics_); }

 private:
  Tensor Run(const LayerContext& ctx, const Tensor& x_MC, LayerStash* stash) override;
  Tensor InputGradient(const LayerContext& ctx, const Tensor& x_MC, Tensor dy,
                       LayerStash* stash) override;
  void WeightGradient(const LayerContext& ctx, const Tensor& x_MC, LayerStash* stash) override;

  MicroBatchNorm norm_;
};

}  // namespace pipelab

#endif  // PIPELAB_MODELS_LAYERS_BATCH_NORM_H_
