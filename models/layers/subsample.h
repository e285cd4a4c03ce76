// Runs what subsample_spec.h describes.
#ifndef PIPELAB_MODELS_LAYERS_SUBSAMPLE_H_
#define PIPELAB_MODELS_LAYERS_SUBSAMPLE_H_

#include <cstdint>

#include "models/layers/layer.h"

namespace pipelab {

class Subsample : public UnaryLayer {
 public:
  explicit Subsample(const LayerSpec& spec);

 private:
  Tensor Run(const LayerContext& ctx, const Tensor& x_MC, LayerStash*) override;
  Tensor InputGradient(const LayerContext& ctx, const Tensor& x_MC, Tensor dy,
                       LayerStash*) override;
  void WeightGradient(const LayerContext&, const Tensor&, LayerStash*) override {}

  int64_t height_, width_, channels_, row_, column_;
};

}  // namespace pipelab

#endif  // PIPELAB_MODELS_LAYERS_SUBSAMPLE_H_
