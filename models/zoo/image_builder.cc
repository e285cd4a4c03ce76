#include "models/zoo/image_builder.h"

#include <cmath>
#include <utility>

#include "models/specs/add_spec.h"
#include "models/specs/batch_norm_spec.h"
#include "models/specs/classifier_spec.h"
#include "models/specs/concat_spec.h"
#include "models/specs/dense_spec.h"
#include "models/specs/element_loss_spec.h"
#include "models/specs/image_conv_spec.h"
#include "models/specs/relu_spec.h"
#include "models/specs/subsample_spec.h"
#include "models/specs/up_conv_spec.h"
#include "tools/base/status_macros.h"

namespace pipelab {

ConvOptions ConvOf(int64_t out, int64_t kernel, int64_t stride, bool relu) {
  ConvOptions o;
  o.out = out;
  o.kernel_height = o.kernel_width = kernel;
  o.stride_height = o.stride_width = stride;
  o.relu = relu;
  o.norm = true;
  return o;
}

int ImageBuilder::Push(LayerSpec layer) {
  model_.graph.layers.push_back(std::move(layer));
  model_.group_of_layer.push_back(group_);
  return static_cast<int>(model_.graph.layers.size()) - 1;
}

ImageAt ImageBuilder::Conv(const std::string& name, const ImageAt& x, const ConvOptions& options) {
  ImageConvSizes s;
  s.name = name;
  s.input = x.layer;
  s.height = x.height;
  s.width = x.width;
  s.in = x.channels;
  s.out = options.out;
  s.kernel_height = options.kernel_height;
  s.kernel_width = options.kernel_width;
  s.stride_height = options.stride_height;
  s.stride_width = options.stride_width;
  s.relu = options.relu;
  s.norm = options.norm;
  s.bias = options.bias;
  return {Push(ImageConvSpec(s)), s.out_height(), s.out_width(), s.out};
}

ImageAt ImageBuilder::UpConv(const std::string& name, const ImageAt& x, int64_t out) {
  const UpConvSizes s{name, x.layer, x.height, x.width, x.channels, out};
  return {Push(UpConvSpec(s)), 2 * x.height, 2 * x.width, out};
}

ImageAt ImageBuilder::Norm(const std::string& name, const ImageAt& x) {
  const BatchNormSizes s{name, x.layer, x.pixels(), x.channels};
  return {Push(BatchNormSpec(s)), x.height, x.width, x.channels};
}

ImageAt ImageBuilder::Relu(const std::string& name, const ImageAt& x) {
  const ReluSizes s{name, x.layer, {x.pixels(), x.channels}};
  return {Push(ReluSpec(s)), x.height, x.width, x.channels};
}

namespace {

PoolSizes PoolOf(const std::string& name, const ImageAt& x, PoolKind kind, int64_t kernel,
                 int64_t stride, int64_t pad) {
  PoolSizes s;
  s.name = name;
  s.input = x.layer;
  s.height = x.height;
  s.width = x.width;
  s.channels = x.channels;
  s.kind = kind;
  s.kernel = kernel;
  s.stride = stride;
  s.pad = pad;
  return s;
}

}  // namespace

ImageAt ImageBuilder::Pool(const std::string& name, const ImageAt& x, PoolKind kind, int64_t kernel,
                           int64_t stride, int64_t pad) {
  const PoolSizes s = PoolOf(name, x, kind, kernel, stride, pad);
  return {Push(PoolSpec(s)), s.out_height(), s.out_width(), x.channels};
}

ImageAt ImageBuilder::FlatMaxPool(const std::string& name, const ImageAt& x, int64_t kernel,
                                  int64_t stride) {
  PoolSizes s = PoolOf(name, x, PoolKind::kMax, kernel, stride, /*pad=*/0);
  s.flat = true;
  return {Push(PoolSpec(s)), 1, 1, s.out_height() * s.out_width() * x.channels};
}

ImageAt ImageBuilder::GlobalAverage(const std::string& name, const ImageAt& x) {
  const PoolSizes s = pipelab::GlobalAverage(name, x.layer, x.height, x.width, x.channels);
  return {Push(PoolSpec(s)), 1, 1, x.channels};
}

ImageAt ImageBuilder::Subsample(const std::string& name, const ImageAt& x, int64_t offset) {
  const SubsampleSizes s{name, x.layer, x.height, x.width, x.channels, offset, offset};
  return {Push(SubsampleSpec(s)), x.height / 2, x.width / 2, x.channels};
}

ImageAt ImageBuilder::Add(const std::string& name, const std::vector<ImageAt>& x) {
  AddSizes s;
  s.name = name;
  for (const ImageAt& image : x) s.inputs.push_back(image.layer);
  s.shape = {x[0].pixels(), x[0].channels};
  return {Push(AddSpec(s)), x[0].height, x[0].width, x[0].channels};
}

ImageAt ImageBuilder::Concat(const std::string& name, const std::vector<ImageAt>& x) {
  ConcatSizes s;
  s.name = name;
  s.tokens = x[0].pixels();
  int64_t channels = 0;
  for (const ImageAt& image : x) {
    s.inputs.push_back(image.layer);
    s.widths.push_back(image.channels);
    channels += image.channels;
  }
  return {Push(ConcatSpec(s)), x[0].height, x[0].width, channels};
}

ImageAt ImageBuilder::Dense(const std::string& name, const ImageAt& x, int64_t out) {
  DenseSizes s;
  s.name = name;
  s.input = x.layer;
  s.tokens = x.pixels();
  s.in = x.channels;
  s.out = out;
  s.activation = Activation::kRelu;
  s.stddev = std::sqrt(2.0 / static_cast<double>(x.channels));
  return {Push(DenseSpec(s)), x.height, x.width, out};
}

void ImageBuilder::SquaredError(const std::string& name, const ImageAt& x) {
  ElementLossSizes s;
  s.name = name;
  s.input = x.layer;
  s.width = x.channels;
  s.rows = x.pixels();
  Push(ElementLossSpec(s));
}

void ImageBuilder::Classify(const std::string& name, const ImageAt& x, int64_t classes) {
  ClassifierSizes s;
  s.name = name;
  s.input = x.layer;
  s.rows = x.pixels();
  s.channels = x.channels;
  s.classes = classes;
  Push(ClassifierSpec(s));
}

absl::StatusOr<GroupedModel> ImageBuilder::Finish() {
  PIPELAB_RETURN_IF_ERROR(Validate(model_.graph));
  return std::move(model_);
}

}  // namespace pipelab
