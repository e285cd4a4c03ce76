#include "models/layers/test_images.h"

#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "glog/logging.h"
#include "models/specs/batch_norm_spec.h"
#include "models/specs/classifier_spec.h"
#include "models/specs/image_conv_spec.h"
#include "models/specs/pool_spec.h"
#include "models/specs/relu_spec.h"
#include "models/specs/subsample_spec.h"
#include "models/specs/up_conv_spec.h"
#include "models/zoo/amoebanet.h"
#include "models/zoo/resnet.h"
#include "models/zoo/unet.h"
#include "models/zoo/vgg.h"

namespace pipelab {
namespace {

struct ConvCase {
  int64_t kernel_height, kernel_width, stride_height, stride_width, in, out;
};

void AddConvolutions(std::vector<LayerSpec>* layers) {
  const ConvCase cases[] = {
      {1, 1, 1, 1, 3, 5}, {1, 1, 2, 2, 5, 3}, {3, 3, 1, 1, 4, 2},
      {3, 3, 2, 2, 2, 7}, {1, 7, 1, 1, 3, 4}, {7, 1, 1, 1, 4, 3},
      {1, 7, 1, 2, 3, 3}, {7, 7, 2, 2, 2, 3}, {1, 1, 1, 1, 33, 2},
  };
  for (const ConvCase& c : cases) {
    for (int flags = 0; flags < 16; ++flags) {
      ImageConvSizes s;
      s.relu = (flags & 1) != 0;
      s.norm = (flags & 2) != 0;
      s.bias = (flags & 4) != 0;
      s.input = (flags & 8) != 0 ? -1 : 0;
      s.name = absl::StrCat("conv", c.kernel_height, "x", c.kernel_width, "/", c.stride_width, "/",
                            c.in, "to", c.out, s.relu ? "/relu" : "", s.norm ? "/norm" : "",
                            s.bias ? "/bias" : "", s.input < 0 ? "/data" : "");
      s.height = 6;
      s.width = 5;
      s.in = c.in;
      s.out = c.out;
      s.kernel_height = c.kernel_height;
      s.kernel_width = c.kernel_width;
      s.stride_height = c.stride_height;
      s.stride_width = c.stride_width;
      layers->push_back(ImageConvSpec(s));
    }
  }
}

void AddPools(std::vector<LayerSpec>* layers) {
  for (PoolKind kind : {PoolKind::kMax, PoolKind::kAverage}) {
    for (int64_t kernel : {2, 3}) {
      for (int64_t stride : {1, 2}) {
        for (bool flat : {false, true}) {
          PoolSizes s;
          s.name = absl::StrCat(kind == PoolKind::kMax ? "max" : "average", kernel, "/", stride,
                                flat ? "/flat" : "");
          s.height = 6;
          s.width = 5;
          s.channels = 3;
          s.kind = kind;
          s.kernel = kernel;
          s.stride = stride;
          s.pad = (kernel - 1) / 2;
          s.flat = flat;
          layers->push_back(PoolSpec(s));
        }
      }
    }
  }
  layers->push_back(PoolSpec(GlobalAverage("global", 0, 6, 5, 3)));
  layers->push_back(PoolSpec(FirstRow("first", 0, 7, 3)));
}

GroupedModel Made(absl::StatusOr<GroupedModel> model) {
  CHECK(model.ok()) << model.status();
  return *std::move(model);
}

}  // namespace

std::vector<LayerSpec> ImageLayers() {
  std::vector<LayerSpec> layers;
  AddConvolutions(&layers);
  AddPools(&layers);
  layers.push_back(BatchNormSpec({"norm", 0, 30, 3}));
  layers.push_back(ReluSpec({"relu", 0, {30, 3}}));
  for (int64_t row : {0, 1}) {
    for (int64_t column : {0, 1}) {
      layers.push_back(
          SubsampleSpec({absl::StrCat("subsample", row, column), 0, 6, 4, 3, row, column}));
    }
  }
  layers.push_back(UpConvSpec({"up", 0, 3, 2, 4, 3}));
  layers.push_back(UpConvSpec({"up_wide", 0, 3, 2, 2, 17}));
  for (int64_t rows : {1, 6}) {
    ClassifierSizes s;
    s.name = absl::StrCat("classifier", rows);
    s.rows = rows;
    s.channels = 4;
    s.classes = 7;
    s.stddev = 0.3;
    layers.push_back(ClassifierSpec(s));
  }
  return layers;
}

bool HasKinks(const LayerSpec& layer) {
  if (layer.kind == kImageConv) return ImageConvSizesOf(layer).relu;
  if (layer.kind == kPool) return PoolSizesOf(layer).kind == PoolKind::kMax;
  return layer.kind == kRelu;
}

GroupedModel SmallAmoebaNet() {
  AmoebaNetConfig c;
  c.layers = 3;
  c.filters = 16;
  c.classes = 5;
  c.height = c.width = 8;
  c.channels = 2;
  c.stem_stride = 1;
  c.stem_reductions = 0;
  return Made(BuildAmoebaNet(c));
}

GroupedModel SmallUNet() {
  UNetConfig c;
  c.levels = 2;
  c.width = 3;
  c.classes = 3;
  c.side = 8;
  c.channels = 2;
  return Made(BuildUNet(c));
}

GroupedModel SmallVgg() {
  VggConfig c;
  c.width = 2;
  c.dense = 8;
  c.classes = 4;
  c.side = 32;
  c.channels = 2;
  return Made(BuildVgg16(c));
}

GroupedModel SmallResNet() {
  ResNetConfig c;
  c.blocks = {1, 1};
  c.width = 4;
  c.classes = 4;
  c.height = c.image_width = 16;
  c.channels = 2;
  return Made(BuildResNet(c));
}

}  // namespace pipelab
