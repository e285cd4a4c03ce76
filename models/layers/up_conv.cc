// Runs what up_conv_spec.h describes.
#include <cstdint>
#include <memory>
#include <utility>

#include "models/layers/layer.h"
#include "models/layers/makers.h"

namespace pipelab {
namespace {

class UpConv : public UnaryLayer {
 public:
  explicit UpConv(const LayerSpec& spec);

 private:
  Tensor Run(const LayerContext& ctx, const Tensor& x_MC, LayerStash*) override;
  Tensor InputGradient(const LayerContext& ctx, const Tensor& x_MC, Tensor dy,
                       LayerStash* stash) override;
  void WeightGradient(const LayerContext& ctx, const Tensor& x_MC, LayerStash* stash) override;

  // The shape of the convolution that goes the other way: from the large image to the small one.
  ConvolutionShape ShapeOf(const LayerContext& ctx) const;

  int64_t height_, width_, in_, out_;
};

Shape Large(const ConvolutionShape& s) { return {s.samples, s.height, s.width, s.in_channels}; }
Shape Small(const ConvolutionShape& s) {
  return {s.samples, s.out_height(), s.out_width(), s.out_channels};
}

UpConv::UpConv(const LayerSpec& spec)
    : height_(WholeAttribute(spec, "height")),
      width_(WholeAttribute(spec, "width")),
      in_(spec.input_shapes[0][1]),
      out_(spec.output_shape[1]) {}

ConvolutionShape UpConv::ShapeOf(const LayerContext& ctx) const {
  ConvolutionShape s;
  s.samples = ctx.samples;
  s.height = 2 * height_;
  s.width = 2 * width_;
  s.in_channels = out_;
  s.out_channels = in_;
  s.kernel_height = s.kernel_width = 2;
  s.stride_height = s.stride_width = 2;
  return s;
}

Tensor UpConv::Run(const LayerContext& ctx, const Tensor& x_MC, LayerStash*) {
  const ConvolutionShape shape = ShapeOf(ctx);
  Tensor y_MC = ctx.backend->Allocate({4 * x_MC.dim(0), out_});
  ctx.backend->convolution().InputGradient(shape, x_MC.Reshape(Small(shape)), parameters_[0].value,
                                           y_MC.Reshape(Large(shape)));
  return y_MC;
}

Tensor UpConv::InputGradient(const LayerContext& ctx, const Tensor& x_MC, Tensor dy,
                             LayerStash* stash) {
  const ConvolutionShape shape = ShapeOf(ctx);
  Tensor dx_MC = ctx.backend->Allocate(x_MC.shape());
  ctx.backend->convolution().Forward(shape, dy.Reshape(Large(shape)), parameters_[0].value,
                                     Tensor(), dx_MC.Reshape(Small(shape)));
  stash->tensors = {std::move(dy)};
  return dx_MC;
}

void UpConv::WeightGradient(const LayerContext& ctx, const Tensor& x_MC, LayerStash* stash) {
  const ConvolutionShape shape = ShapeOf(ctx);
  ctx.backend->convolution().WeightGradient(shape, stash->tensors[0].Reshape(Large(shape)),
                                            x_MC.Reshape(Small(shape)), parameters_[0].gradient,
                                            Tensor());
  stash->tensors.clear();
}

}  // namespace

std::unique_ptr<Layer> MakeUpConv(const LayerSpec& spec) { return std::make_unique<UpConv>(spec); }

}  // namespace pipelab
