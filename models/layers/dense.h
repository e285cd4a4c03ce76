// Runs what dense_spec.h describes. x_MK, y_MN; h is the activation's input.
#ifndef PIPELAB_MODELS_LAYERS_DENSE_H_
#define PIPELAB_MODELS_LAYERS_DENSE_H_

#include <cstdint>

#include "models/layers/dense_spec.h"
#include "models/layers/layer.h"

namespace pipelab {

class Dense : public UnaryLayer {
 public:
  explicit Dense(const LayerSpec& spec);

 private:
  Tensor Run(const LayerContext& ctx, const Tensor& x_MK, LayerStash* stash) override;
  Tensor InputGradient(const LayerContext& ctx, const Tensor& x_MK, Tensor dy,
                       LayerStash* stash) override;
  void WeightGradient(const LayerContext& ctx, const Tensor& x_MK, LayerStash* stash) override;

  int64_t out_;
  Activation activation_;
};

}  // namespace pipelab

#endif  // PIPELAB_MODELS_LAYERS_DENSE_H_
