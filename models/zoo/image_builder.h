// Puts together networks of images, layer after layer, keeping track of sizes and groups.
//
//   ImageBuilder b("vgg16");
//   ImageAt x = b.Data(224, 224, 3);
//   x = b.Conv("conv1", x, {.out = 64, .kernel_height = 3, .kernel_width = 3});
//   b.Classify("classifier", b.GlobalAverage("pool", x), 1000);
//   return b.Finish();                                              // validated
#ifndef PIPELAB_MODELS_ZOO_IMAGE_BUILDER_H_
#define PIPELAB_MODELS_ZOO_IMAGE_BUILDER_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "models/specs/pool_spec.h"
#include "models/zoo/layer_groups.h"

namespace pipelab {

// The image that a layer makes; layer -1: the data's.
struct ImageAt {
  int layer = -1;
  int64_t height = 0, width = 0, channels = 0;

  int64_t pixels() const { return height * width; }
};

struct ConvOptions {
  int64_t out = 0;
  int64_t kernel_height = 1, kernel_width = 1;
  int64_t stride_height = 1, stride_width = 1;
  bool relu = false, norm = false, bias = false;  // as in image_conv_spec.h
};
// A square kernel.
ConvOptions ConvOf(int64_t out, int64_t kernel, int64_t stride, bool relu);

class ImageBuilder {
 public:
  explicit ImageBuilder(const std::string& name) { model_.graph.name = name; }

  // Layers belong to the group that was begun last; the first begins by itself.
  void NextGroup() { ++group_; }

  ImageAt Data(int64_t height, int64_t width, int64_t channels) const {
    return {-1, height, width, channels};
  }
  ImageAt Conv(const std::string& name, const ImageAt& x, const ConvOptions& options);
  ImageAt UpConv(const std::string& name, const ImageAt& x, int64_t out);
  ImageAt Norm(const std::string& name, const ImageAt& x);
  ImageAt Relu(const std::string& name, const ImageAt& x);
  ImageAt Pool(const std::string& name, const ImageAt& x, PoolKind kind, int64_t kernel,
               int64_t stride, int64_t pad);
  // The pooled image as one pixel.
  ImageAt FlatMaxPool(const std::string& name, const ImageAt& x, int64_t kernel, int64_t stride);
  ImageAt GlobalAverage(const std::string& name, const ImageAt& x);
  // y[i, j] = x[2 i + offset, 2 j + offset]
  ImageAt Subsample(const std::string& name, const ImageAt& x, int64_t offset);
  ImageAt Add(const std::string& name, const std::vector<ImageAt>& x);
  ImageAt Concat(const std::string& name, const std::vector<ImageAt>& x);
  // A dense layer of each pixel, with a ReLU after it.
  ImageAt Dense(const std::string& name, const ImageAt& x, int64_t out);
  // Targets are floats, one for each pixel and channel.
  void SquaredError(const std::string& name, const ImageAt& x);
  // One target a pixel.
  void Classify(const std::string& name, const ImageAt& x, int64_t classes);

  absl::StatusOr<GroupedModel> Finish();

 private:
  int Push(LayerSpec layer);

  GroupedModel model_;
  int group_ = 0;
};

}  // namespace pipelab

#endif  // PIPELAB_MODELS_ZOO_IMAGE_BUILDER_H_
