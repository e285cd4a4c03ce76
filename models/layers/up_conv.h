// Runs what up_conv_spec.h describes.
#ifndef PIPELAB_MODELS_LAYERS_UP_CONV_H_
#define PIPELAB_MODELS_LAYERS_UP_CONV_H_

#include <cstdint>

#include "models/layers/layer.h"

namespace pipelab {

class UpConv : public UnaryLayer {
 public:
  explicit UpConv(const LayerSpec& spec);

 private:
  Tensor Run(const LayerContext& ctx, const Tensor& x_MC, LayerStash*) override;
  Tensor InputGradient(const LayerContext& ctx, const Tensor& x_MC, Tensor dy,
                       LayerStash* stash) override;
  void WeightGradient(const LayerContext& ctx, const Tensor& x_MC, LayerStash* stash) override;

  // Of the convolution that goes the other way: from the large image to the small one.
  ConvolutionShape ShapeOf(const LayerContext& ctx) const;

  int64_t height_, width_, in_, out_;
};

}  // namespace pipelab

#endif  // PIPELAB_MODELS_LAYERS_UP_CONV_H_
