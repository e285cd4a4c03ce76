#include "models/data/images.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <limits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "glog/logging.h"
#include "tools/base/rng.h"

namespace pipelab {
namespace {

constexpr int64_t kSide = 28, kClasses = 10, kWaves = 6;
constexpr double kPi = 3.14159265358979323846;

struct Wave {
  double y, x, phase;
};

std::array<Wave, kWaves> WavesOf(uint64_t seed, int64_t label) {
  const CounterRng rng(seed, absl::StrCat("data/synthetic/class", label));
  std::array<Wave, kWaves> waves;
  for (uint64_t w = 0; w < kWaves; ++w) {
    waves[w] = {4.0 * rng.Uniform(3 * w) - 2, 4.0 * rng.Uniform(3 * w + 1) - 2,
                rng.Uniform(3 * w + 2)};
  }
  return waves;
}

// A class's brightness at (y, x), both from 0 to 1.
double Blot(const std::array<Wave, kWaves>& waves, double y, double x) {
  double sum = 0;
  for (const Wave& w : waves) sum += std::sin(2 * kPi * (w.y * y + w.x * x + w.phase));
  return 0.5 + 0.5 * std::tanh(sum);
}

void DrawImage(uint64_t seed, int64_t number, LabelledImages* images) {
  const CounterRng rng(seed, absl::StrCat("data/synthetic/image", number));
  const int64_t label = static_cast<int64_t>(rng.Below(0, kClasses));
  const auto shape = WavesOf(seed, label);
  const auto other = WavesOf(seed, static_cast<int64_t>(rng.Below(4, kClasses)));
  const double dy = 0.5 * rng.Uniform(1) - 0.25, dx = 0.5 * rng.Uniform(2) - 0.25;
  const double light = 0.5 + 0.5 * rng.Uniform(3), mixed = 0.45 * rng.Uniform(5);
  for (int64_t i = 0; i < kSide * kSide; ++i) {
    const double y = static_cast<double>(i / kSide) / kSide;
    const double x = static_cast<double>(i % kSide) / kSide;
    const double blot =
        (1 - mixed) * Blot(shape, y + dy, x + dx) + mixed * Blot(other, y - dy, x - dx);
    const double v = 255 * light * blot + 60.0 * rng.Normal(16 + i);
    images->pixels.push_back(static_cast<uint8_t>(std::clamp(v, 0.0, 255.0)));
  }
  images->labels.push_back(static_cast<uint8_t>(label));
}

// The class whose mean training image is nearest.
int NearestMean(const std::vector<double>& means, const uint8_t* pixels, int64_t bytes) {
  int best = 0;
  double least = std::numeric_limits<double>::infinity();
  for (size_t c = 0; c * bytes < means.size(); ++c) {
    double distance = 0;
    for (int64_t p = 0; p < bytes; ++p) {
      const double d = pixels[p] - means[c * bytes + p];
      distance += d * d;
    }
    if (distance >= least) continue;
    least = distance;
    best = static_cast<int>(c);
  }
  return best;
}

std::vector<double> ClassMeans(const LabelledImages& images) {
  const int64_t bytes = images.image_bytes();
  std::vector<double> means(images.classes * bytes), count(images.classes);
  for (int64_t i = 0; i < images.size(); ++i) {
    const int64_t label = images.labels[i];
    ++count[label];
    for (int64_t p = 0; p < bytes; ++p) means[label * bytes + p] += images.pixels[i * bytes + p];
  }
  // A class without images is infinitely far from all.
  for (size_t m = 0; m < means.size(); ++m) {
    const double n = count[m / bytes];
    means[m] = n > 0 ? means[m] / n : std::numeric_limits<double>::infinity();
  }
  return means;
}

}  // namespace

double NearestMeanAccuracy(const LabelledImages& train, const LabelledImages& held_out) {
  const std::vector<double> means = ClassMeans(train);
  const int64_t bytes = train.image_bytes();
  int64_t right = 0;
  for (int64_t i = 0; i < held_out.size(); ++i) {
    const uint8_t* pixels = held_out.pixels.data() + i * bytes;
    right += NearestMean(means, pixels, bytes) == held_out.labels[i];
  }
  return static_cast<double>(right) / static_cast<double>(held_out.size());
}

PixelScale ScaleOf(const LabelledImages& images) {
  double sum = 0, squares = 0;
  for (const uint8_t p : images.pixels) {
    sum += p;
    squares += static_cast<double>(p) * p;
  }
  const double n = static_cast<double>(images.pixels.size());
  const double mean = sum / n, variance = squares / n - mean * mean;
  return {mean / 255, std::max(std::sqrt(std::max(variance, 0.0)), 1.0) / 255};
}

ImageData SyntheticImages(int64_t train, int64_t held_out, uint64_t seed) {
  const auto make = [&](int64_t first, int64_t count) {
    auto images = std::make_shared<LabelledImages>();
    images->height = images->width = kSide;
    images->classes = kClasses;
    for (int64_t i = 0; i < count; ++i) DrawImage(seed, first + i, images.get());
    return images;
  };
  const auto trained = make(0, train);
  return {"synthetic", trained, make(train, held_out), ScaleOf(*trained)};
}

std::vector<float> PixelValues(const PixelScale& scale) {
  std::vector<float> value(256);
  for (int p = 0; p < 256; ++p) {
    value[p] = static_cast<float>((p / 255.0 - scale.mean) / scale.deviation);
  }
  return value;
}

DataField ImageField(const LabelledImages& images, bool channels_last) {
  const int64_t h = images.height, w = images.width, c = images.channels;
  if (channels_last) return {kImage, FieldType::kFloat, {h, w, c}};
  return {kImage, FieldType::kFloat, {c, h, w}};
}

ImagePlacement DrawPlacement(const Augmentation& a, const ExampleOrder& order, int64_t step,
                             int64_t sample) {
  ImagePlacement placement;
  if (a.shift == 0 && !a.flip) return placement;
  const CounterRng rng(order.seed(), absl::StrCat(order.part(), "/augment/step", step));
  const uint64_t first = 3 * static_cast<uint64_t>(sample);
  const uint64_t range = 2 * static_cast<uint64_t>(a.shift) + 1;
  placement.dy = static_cast<int64_t>(rng.Below(first, range)) - a.shift;
  placement.dx = static_cast<int64_t>(rng.Below(first + 1, range)) - a.shift;
  placement.flip = a.flip && rng.Below(first + 2, 2) == 1;
  return placement;
}

void WriteImage(const LabelledImages& images, int64_t image, const ImagePlacement& placement,
                bool channels_last, absl::Span<const float> value, absl::Span<float> out) {
  const int64_t h = images.height, w = images.width, c = images.channels;
  const uint8_t* from = images.pixels.data() + image * images.image_bytes();
  for (int64_t y = 0; y < h; ++y) {
    for (int64_t x = 0; x < w; ++x) {
      const int64_t sy = y - placement.dy;
      const int64_t sx = (placement.flip ? w - 1 - x : x) - placement.dx;
      const bool inside = sy >= 0 && sy < h && sx >= 0 && sx < w;
      for (int64_t k = 0; k < c; ++k) {
        const int64_t to = channels_last ? (y * w + x) * c + k : (k * h + y) * w + x;
        out[to] = value[inside ? from[(sy * w + sx) * c + k] : placement.background];
      }
    }
  }
}

ImageBatchSource::ImageBatchSource(std::shared_ptr<const LabelledImages> images,
                                   const PixelScale& scale, const ImageOptions& options,
                                   ExampleOrder order)
    : ExampleSource({ImageField(*images, options.channels_last),
                     {kTargets, FieldType::kId, {1}, images->classes}},
                    std::move(order)),
      images_(std::move(images)),
      options_(options),
      value_(PixelValues(scale)) {
  CHECK_EQ(examples(), images_->size());
}

void ImageBatchSource::WriteFloats(int, const Draw& draw, absl::Span<float> out) const {
  WriteImage(*images_, draw.example,
             DrawPlacement(options_.augmentation, order(), draw.step, draw.sample),
             options_.channels_last, value_, out);
}

void ImageBatchSource::WriteIds(int, const Draw& draw, absl::Span<int32_t> out) const {
  out[0] = images_->labels[draw.example];
}

}  // namespace pipelab
