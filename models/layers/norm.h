// Runs what norm_spec.h describes. x_MC, y_MC; M = samples * tokens.
#ifndef PIPELAB_MODELS_LAYERS_NORM_H_
#define PIPELAB_MODELS_LAYERS_NORM_H_

#include "models/layers/layer.h"

namespace pipelab {

class Norm : public UnaryLayer {
 public:
  explicit Norm(const LayerSpec&) {}

 private:
  Tensor Run(const LayerContext& ctx, const Tensor& x_MC, LayerStash* stash) override;
  Tensor InputGradient(const LayerContext& ctx, const Tensor& x_MC, Tensor dy,
                       LayerStash* stash) override;
  void WeightGradient(const LayerContext& ctx, const Tensor& x_MC, LayerStash* stash) override;
};

}  // namespace pipelab

#endif  // PIPELAB_MODELS_LAYERS_NORM_H_
