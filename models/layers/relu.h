// Runs what relu_spec.h describes.
#ifndef PIPELAB_MODELS_LAYERS_RELU_H_
#define PIPELAB_MODELS_LAYERS_RELU_H_

#include "models/layers/layer.h"

namespace pipelab {

class ReluLayer : public UnaryLayer {
 public:
  explicit ReluLayer(const LayerSpec&) {}

 private:
  Tensor Run(const LayerContext& ctx, const Tensor& x, LayerStash*) override {
    Tensor y = ctx.backend->Allocate(x.shape());
    ctx.backend->Relu(x, y);
    return y;
  }
  Tensor InputGradient(const LayerContext& ctx, const Tensor& x, Tensor dy, LayerStash*) override {
    ctx.backend->ReluGradient(dy, x, dy);  // x > 0 where relu(x) > 0
    return dy;
  }
  void WeightGradient(const LayerContext&, const Tensor&, LayerStash*) override {}
};

}  // namespace pipelab

#endif  // PIPELAB_MODELS_LAYERS_RELU_H_
