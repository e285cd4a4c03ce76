// Runs what image_conv_spec.h describes. x_MC, M samples times pixels.
#ifndef PIPELAB_MODELS_LAYERS_IMAGE_CONV_H_
#define PIPELAB_MODELS_LAYERS_IMAGE_CONV_H_

#include "models/layers/image_conv_spec.h"
#include "models/layers/layer.h"
#include "models/layers/micro_batch_norm.h"

namespace pipelab {

class ImageConv : public UnaryLayer {
 public:
  explicit ImageConv(const LayerSpec& spec);
  void EndStep(Backend* backend) override {
    if (sizes_.norm) norm_.EndStep(backend, statistics_);
  }

 private:
  Tensor Run(const LayerContext& ctx, const Tensor& x_MC, LayerStash* stash) override;
  Tensor InputGradient(const LayerContext& ctx, const Tensor& x_MC, Tensor dy,
                       LayerStash* stash) override;
  void WeightGradient(const LayerContext& ctx, const Tensor& x_MC, LayerStash* stash) override;

  ConvolutionShape ShapeOf(const LayerContext& ctx) const;
  // What the convolution reads, as an image: x or the data, or a new tensor where these have to
  // change: relu, or the data's floats in the type of activations.
  Tensor ConvInput(const LayerContext& ctx, const Tensor& x_MC) const;
  const Parameter& gamma() const { return parameters_[parameters_.size() - 2]; }
  const Parameter& beta() const { return parameters_.back(); }
  // Empty without a bias.
  Parameter bias() const { return sizes_.bias ? parameters_[1] : Parameter(); }

  const ImageConvSizes sizes_;
  MicroBatchNorm norm_;
};

}  // namespace pipelab

#endif  // PIPELAB_MODELS_LAYERS_IMAGE_CONV_H_
