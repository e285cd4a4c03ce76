#include "models/data/png.h"

#include <png.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "absl/cleanup/cleanup.h"
#include "absl/status/status.h"
#include "absl/strings/str_format.h"
#include "models/data/byte_reader.h"

namespace pipelab {
namespace {

// How much of [begin, end) lies in pixel `i`.
double Overlap(double begin, double end, int64_t i) {
  return std::max(
      0.0, std::min(end, static_cast<double>(i + 1)) - std::max(begin, static_cast<double>(i)));
}

// libpng unpacks all of them, also those behind the picture's end.
int64_t CompressedBytes(absl::string_view png) {
  const FileByteReader file(png, "", ByteOrder::kBig);
  int64_t sum = 0;
  for (int64_t at = 8; at + 8 <= file.size();) {  // behind the signature: length, name, data, sum
    const int64_t length = *file.U32(at);
    if (png.substr(at + 4, 4) == "IDAT") sum += length;
    at += 12 + length;
  }
  return sum;
}

}  // namespace

absl::StatusOr<PngImage> DecodePng(absl::string_view bytes, absl::string_view what, int64_t limit) {
  png_image image = {};
  image.version = PNG_IMAGE_VERSION;
  const auto release = absl::MakeCleanup([&] { png_image_free(&image); });
  const auto damaged = [&] {
    return absl::DataLossError(absl::StrFormat("%s: damaged PNG: %s", what, image.message));
  };
  if (png_image_begin_read_from_memory(&image, bytes.data(), bytes.size()) == 0) return damaged();
  PngImage picture;
  picture.width = image.width;
  picture.height = image.height;
  if (picture.width > limit / std::max<int64_t>(picture.height, 1)) {
    return absl::OutOfRangeError(absl::StrFormat("%s: %d x %d pixels; at most %d are allowed", what,
                                                 picture.width, picture.height, limit));
  }
  // A pixel has 8 bytes at most, and a row one more; packing may lengthen them a little.
  const int64_t most = (1 << 16) + 2 * 9 * picture.width * picture.height;
  if (const int64_t packed = CompressedBytes(bytes); packed > most) {
    return absl::DataLossError(absl::StrFormat(
        "%s: %d bytes of compressed pixels; a picture of %d x %d pixels has at most %d", what,
        packed, picture.width, picture.height, most));
  }
  image.format = PNG_FORMAT_RGBA;
  picture.rgba.resize(PNG_IMAGE_SIZE(image));
  const int ok = png_image_finish_read(&image, nullptr, picture.rgba.data(), 0, nullptr);
  // libpng takes a cut-off picture with a warning; a part is no picture here.
  if (ok == 0 || image.warning_or_error != 0) return damaged();
  return picture;
}

std::vector<uint8_t> ScaleOnWhite(const PngImage& picture, int64_t side) {
  const int64_t longer = std::max(picture.width, picture.height);
  const double step = static_cast<double>(longer) / static_cast<double>(side);
  const double left = static_cast<double>(longer - picture.width) / 2;
  const double top = static_cast<double>(longer - picture.height) / 2;
  std::vector<uint8_t> out;
  for (int64_t y = 0; y < side; ++y) {
    const double y0 = static_cast<double>(y) * step - top, y1 = y0 + step;
    for (int64_t x = 0; x < side; ++x) {
      const double x0 = static_cast<double>(x) * step - left, x1 = x0 + step;
      std::array<double, 3> less = {};  // below white
      const auto begin = [](double v) {
        return static_cast<int64_t>(std::max(std::floor(v), 0.0));
      };
      for (int64_t sy = begin(y0); sy < std::min<double>(y1, picture.height); ++sy) {
        for (int64_t sx = begin(x0); sx < std::min<double>(x1, picture.width); ++sx) {
          const uint8_t* p = &picture.rgba[(sy * picture.width + sx) * 4];
          const double weight = Overlap(y0, y1, sy) * Overlap(x0, x1, sx) * p[3] / 255.0;
          for (int c = 0; c < 3; ++c) less[c] += weight * (255 - p[c]);
        }
      }
      for (const double l : less) {
        out.push_back(static_cast<uint8_t>(std::lround(255 - l / (step * step))));
      }
    }
  }
  return out;
}

}  // namespace pipelab
