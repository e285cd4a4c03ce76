// Runs what element_loss_spec.h describes. The loss goes to LayerContext::loss_sum.
#ifndef PIPELAB_MODELS_LAYERS_ELEMENT_LOSS_H_
#define PIPELAB_MODELS_LAYERS_ELEMENT_LOSS_H_

#include "models/layers/element_loss_spec.h"
#include "models/layers/layer.h"

namespace pipelab {

class ElementLoss : public UnaryLayer {
 public:
  explicit ElementLoss(const LayerSpec& spec);

 private:
  Tensor Run(const LayerContext& ctx, const Tensor& x, LayerStash* stash) override;
  Tensor InputGradient(const LayerContext& ctx, const Tensor& x, Tensor dy,
                       LayerStash* stash) override;
  void WeightGradient(const LayerContext& ctx, const Tensor& x, LayerStash* stash) override;

  ElementLossKind kind_;
};

}  // namespace pipelab

#endif  // PIPELAB_MODELS_LAYERS_ELEMENT_LOSS_H_
