// Runs what image_conv_spec.h describes. x_MC, M samples times pixels.
#include <memory>
#include <utility>

#include "models/layers/layer.h"
#include "models/layers/makers.h"
#include "models/layers/micro_batch_norm.h"
#include "models/specs/image_conv_spec.h"

namespace pipelab {
namespace {

class ImageConv : public UnaryLayer {
 public:
  explicit ImageConv(const LayerSpec& spec);
  void EndStep(Backend* backend) override {
    if (sizes_.norm) norm_.EndStep(backend, statistics_);
  }

 private:
  // Places in the stash: of the forward, with a norm; of the input gradient (the parts with a
  // norm).
  enum { kConv, kMean, kVariance };
  enum { kDconv, kDgammaPart, kDbetaPart };

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

ImageConv::ImageConv(const LayerSpec& spec) : sizes_(ImageConvSizesOf(spec)) {}

ConvolutionShape ImageConv::ShapeOf(const LayerContext& ctx) const {
  ConvolutionShape s;
  s.samples = ctx.samples;
  s.height = sizes_.height;
  s.width = sizes_.width;
  s.in_channels = sizes_.in;
  s.out_channels = sizes_.out;
  s.kernel_height = sizes_.kernel_height;
  s.kernel_width = sizes_.kernel_width;
  s.stride_height = sizes_.stride_height;
  s.stride_width = sizes_.stride_width;
  s.pad_height = (sizes_.kernel_height - 1) / 2;
  s.pad_width = (sizes_.kernel_width - 1) / 2;
  return s;
}

Tensor ImageConv::ConvInput(const LayerContext& ctx, const Tensor& x_MC) const {
  const Shape image = {ctx.samples, sizes_.height, sizes_.width, sizes_.in};
  Tensor x = (sizes_.input < 0 ? ctx.batch->fields[0] : x_MC).Reshape(image);
  const bool same_type = x.type() == ctx.backend->activation_type();
  if (same_type && !sizes_.relu) return x;
  const Tensor copy = ctx.backend->Allocate(image);
  if (!same_type) {  // the data's
    ctx.backend->Copy(x, copy);
    x = copy;
  }
  if (sizes_.relu) ctx.backend->Relu(x, copy);
  return copy;
}

Tensor ImageConv::Run(const LayerContext& ctx, const Tensor& x_MC, LayerStash* stash) {
  const ConvolutionShape shape = ShapeOf(ctx);
  Tensor image = ConvInput(ctx, x_MC);
  Tensor conv_MC =
      ctx.backend->Allocate({ctx.samples * shape.out_height() * shape.out_width(), sizes_.out});
  const Shape out_image = {ctx.samples, shape.out_height(), shape.out_width(), sizes_.out};
  ctx.backend->convolution().Forward(shape, image, parameters_[0].value, bias().value,
                                     conv_MC.Reshape(out_image));
  image = Tensor();
  if (!sizes_.norm) return conv_MC;
  Tensor mean_C, variance_C;
  Tensor y_MC = norm_.Forward(ctx, conv_MC, gamma(), beta(), statistics_, &mean_C, &variance_C);
  if (ctx.training) {
    stash->tensors = {std::move(conv_MC), std::move(mean_C), std::move(variance_C)};
  }
  return y_MC;
}

Tensor ImageConv::InputGradient(const LayerContext& ctx, const Tensor& x_MC, Tensor dy,
                                LayerStash* stash) {
  const ConvolutionShape shape = ShapeOf(ctx);
  std::vector<Tensor> left = {dy};
  if (sizes_.norm) {
    const std::vector<Tensor>& kept = stash->tensors;
    norm_.InputGradient(ctx, dy, kept[kConv], gamma(), kept[kMean], kept[kVariance], &left);
  }
  stash->tensors = std::move(left);
  if (sizes_.input < 0) return Tensor();
  Tensor dx_MC = ctx.backend->Allocate(x_MC.shape());
  const Shape out_image = {ctx.samples, shape.out_height(), shape.out_width(), sizes_.out};
  const Shape in_image = {ctx.samples, sizes_.height, sizes_.width, sizes_.in};
  ctx.backend->convolution().InputGradient(shape, dy.Reshape(out_image), parameters_[0].value,
                                           dx_MC.Reshape(in_image));
  if (sizes_.relu) ctx.backend->ReluGradient(dx_MC, x_MC, dx_MC);  // x > 0 where relu(x) > 0
  return dx_MC;
}

void ImageConv::WeightGradient(const LayerContext& ctx, const Tensor& x_MC, LayerStash* stash) {
  const ConvolutionShape shape = ShapeOf(ctx);
  std::vector<Tensor>& kept = stash->tensors;
  if (sizes_.norm) {
    MicroBatchNorm::WeightGradient(ctx, kept[kDgammaPart], kept[kDbetaPart], gamma(), beta());
    kept.resize(1);
  }
  const Shape out_image = {ctx.samples, shape.out_height(), shape.out_width(), sizes_.out};
  const Tensor image = ConvInput(ctx, x_MC);
  ctx.backend->convolution().WeightGradient(shape, image, kept[kDconv].Reshape(out_image),
                                            parameters_[0].gradient, bias().gradient);
  kept.clear();
}

}  // namespace

std::unique_ptr<Layer> MakeImageConv(const LayerSpec& spec) {
  return std::make_unique<ImageConv>(spec);
}

}  // namespace pipelab
