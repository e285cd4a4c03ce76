// Runs what classifier_spec.h describes. x_MC in, the loss out (LayerContext::loss_sum).
#ifndef PIPELAB_MODELS_LAYERS_CLASSIFIER_H_
#define PIPELAB_MODELS_LAYERS_CLASSIFIER_H_

#include <cstdint>

#include "models/layers/layer.h"

namespace pipelab {

class Classifier : public UnaryLayer {
 public:
  explicit Classifier(const LayerSpec& spec) : classes_(spec.data[0].limit) {}

 private:
  Tensor Run(const LayerContext& ctx, const Tensor& x_MC, LayerStash* stash) override;
  Tensor InputGradient(const LayerContext& ctx, const Tensor& x_MC, Tensor dy,
                       LayerStash* stash) override;
  void WeightGradient(const LayerContext& ctx, const Tensor& x_MC, LayerStash* stash) override;

  int64_t classes_;
};

}  // namespace pipelab

#endif  // PIPELAB_MODELS_LAYERS_CLASSIFIER_H_
