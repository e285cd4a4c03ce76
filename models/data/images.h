// Labelled images and batches of them.
//
//   ImageData data = SyntheticImages(/*train=*/2000, /*held_out=*/500, /*seed=*/1);
//   ImageBatchSource train(data.train, data.scale, {}, ExampleOrder(data.train->size(), 128, 1,
//   "data")); ImageBatchSource held_out(data.held_out, data.scale, {},
//   ExampleOrder(data.held_out->size()));
//
// Fields: "image", floats [height, width, channels] (or the channels first, by option); "targets",
// one id below the number of classes.
// A pixel p of 0 to 255 is (p / 255 - mean) / deviation, both of the training images.
#ifndef PIPELAB_MODELS_DATA_IMAGES_H_
#define PIPELAB_MODELS_DATA_IMAGES_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "models/data/example_source.h"

namespace pipelab {

struct LabelledImages {
  int64_t height = 0, width = 0, channels = 1;
  int64_t classes = 0;
  std::vector<uint8_t> pixels;  // [image, row, column, channel]
  std::vector<uint8_t> labels;

  int64_t size() const { return static_cast<int64_t>(labels.size()); }
  int64_t image_bytes() const { return height * width * channels; }
};

struct PixelScale {
  double mean = 0, deviation = 1;  // of pixels / 255
};
PixelScale ScaleOf(const LabelledImages& images);

struct ImageData {
  std::string name;  // "fashion-mnist", "synthetic"
  std::shared_ptr<const LabelledImages> train, held_out;
  PixelScale scale;
};

// Generated images, 28x28 in 10 classes: each class is a fixed blot of waves, moved and dimmed at
// random, mixed with some of another class's, under noise.
ImageData SyntheticImages(int64_t train, int64_t held_out, uint64_t seed);

// The share of held-out images whose label is that of the nearest mean training image of a class:
// what a model must beat easily.
double NearestMeanAccuracy(const LabelledImages& train, const LabelledImages& held_out);

struct Augmentation {
  int64_t shift = 0;  // pixels at most, each way; what comes in from outside is background
  bool flip = false;  // left to right, one in two
};

struct ImageOptions {
  bool channels_last = true;
  Augmentation augmentation;  // drawn by (seed, part, step, sample) of the order
};

class ImageBatchSource final : public ExampleSource {
 public:
  // The order's examples are the images (CHECKed).
  ImageBatchSource(std::shared_ptr<const LabelledImages> images, const PixelScale& scale,
                   const ImageOptions& options, ExampleOrder order);

 private:
  void WriteFloats(int field, const Draw& draw, absl::Span<float> out) const override;
  void WriteIds(int field, const Draw& draw, absl::Span<int32_t> out) const override;

  const std::shared_ptr<const LabelledImages> images_;
  const ImageOptions options_;
  std::vector<float> value_;  // of each pixel value
};

// One image, moved by (dy, dx) and turned over, as numbers. `value` has one for each pixel value.
struct ImagePlacement {
  int64_t dy = 0, dx = 0;
  bool flip = false;
  uint8_t background = 0;  // the pixel value of what comes in from outside: black
};
// Drawn by (seed, part, step, sample).
ImagePlacement DrawPlacement(const Augmentation& augmentation, const ExampleOrder& order,
                             int64_t step, int64_t sample);
void WriteImage(const LabelledImages& images, int64_t image, const ImagePlacement& placement,
                bool channels_last, absl::Span<const float> value, absl::Span<float> out);
std::vector<float> PixelValues(const PixelScale& scale);
DataField ImageField(const LabelledImages& images, bool channels_last);

}  // namespace pipelab

#endif  // PIPELAB_MODELS_DATA_IMAGES_H_
