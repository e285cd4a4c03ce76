#include "models/data/camera_frames.h"

#include <algorithm>
#include <cmath>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "models/data/pgm.h"
#include "tools/base/file.h"
#include "tools/base/status_macros.h"

namespace pipelab {
namespace {

constexpr absl::string_view kImagesFolder = "usr/share/visp-images-data/ViSP-images/mire-2";
constexpr int kMostFrames = 9999;

absl::Status AddFrame(const GreyImage& image, const std::string& file, int64_t reduce,
                      FrameStream* stream) {
  if (reduce < 1 || image.height % reduce != 0 || image.width % reduce != 0) {
    return absl::InvalidArgumentError(absl::StrCat("reduce=", reduce, ": must divide the sides of ",
                                                   file, ", ", image.width, " x ", image.height));
  }
  const int64_t height = image.height / reduce, width = image.width / reduce;
  if (stream->levels.empty()) {
    stream->height = height;
    stream->width = width;
  }
  if (stream->height != height || stream->width != width) {
    return absl::InvalidArgumentError(absl::StrCat(
        file, ": ", image.width, " x ", image.height, " pixels; the frames before it have ",
        stream->width * reduce, " x ", stream->height * reduce));
  }
  for (int64_t row = 0; row < height; ++row) {
    for (int64_t column = 0; column < width; ++column) {
      int64_t sum = 0;
      for (int64_t y = row * reduce; y < (row + 1) * reduce; ++y) {
        for (int64_t x = column * reduce; x < (column + 1) * reduce; ++x) {
          sum += image.pixels[y * image.width + x];
        }
      }
      stream->levels.push_back(static_cast<float>(static_cast<double>(sum) /
                                                  static_cast<double>(255 * reduce * reduce)));
    }
  }
  return absl::OkStatus();
}

std::string FrameFile(const std::string& folder, int number) {
  return JoinPath(folder, absl::StrFormat("image.%04d.pgm", number));
}

std::vector<DataField> FrameFields(const FrameStream& frames) {
  return {{kImage, FieldType::kFloat, {frames.height, frames.width, 1}},
          {kTargets, FieldType::kFloat, {frames.pixels()}}};
}

}  // namespace

absl::StatusOr<FrameStream> ReadFrames(const std::string& folder, int64_t reduce) {
  FrameStream stream;
  for (int number = 1; number <= kMostFrames; ++number) {
    const std::string file = FrameFile(folder, number);
    if (!PathExists(file)) break;
    PIPELAB_ASSIGN_OR_RETURN(const std::string bytes, ReadFile(file));
    const absl::StatusOr<GreyImage> image = ParsePgm(bytes, file);
    if (absl::IsDataLoss(image.status()) && number > 2 &&
        !PathExists(FrameFile(folder, number + 1))) {
      stream.end = absl::StrCat(image.status().message(), "; the ", number - 1,
                                " frames before it are whole");
      break;
    }
    PIPELAB_RETURN_IF_ERROR(image.status());
    PIPELAB_RETURN_IF_ERROR(AddFrame(*image, file, reduce, &stream));
  }
  if (!stream.levels.empty() && stream.size() > 1) return stream;
  return absl::InvalidArgumentError(absl::StrCat(
      folder, ": needs two frames or more, in image.0001.pgm, image.0002.pgm and so on"));
}

const DebianPackage& CameraFramesPackage() {
  static const auto& package =
      *new DebianPackage{"visp-images-data", "3.5.0-1",
                         "8d78de2b5d0ff5536ae5c281b11a5011fd6e95cd717c2e0ebf38bacf57723a9d"};
  return package;
}

absl::StatusOr<FrameStream> LoadCameraFrames(absl::string_view package_dir, int64_t reduce) {
  return ReadFrames(JoinPath(package_dir, kImagesFolder), reduce);
}

absl::StatusOr<FrameStream> FetchCameraFrames(absl::string_view cache_dir, int64_t reduce,
                                              const FetchOptions& options) {
  PIPELAB_ASSIGN_OR_RETURN(const std::string dir,
                           FetchDebianPackage(CameraFramesPackage(), cache_dir, options));
  return LoadCameraFrames(dir, reduce);
}

double CopyError(const FrameStream& frames) {
  double sum = 0;
  const auto pairs = static_cast<size_t>((frames.size() - 1) * frames.pixels());
  for (size_t i = 0; i < pairs; ++i) {
    const double change = static_cast<double>(frames.levels[i + frames.pixels()]) -
                          static_cast<double>(frames.levels[i]);
    sum += change * change;
  }
  return sum / static_cast<double>(pairs);
}

FrameStream SyntheticFrames(int64_t frames, int64_t height, int64_t width) {
  FrameStream stream;
  stream.height = height;
  stream.width = width;
  for (int64_t t = 0; t < frames; ++t) {
    for (int64_t i = 0; i < height * width; ++i) {
      const int64_t row = i / width, column = i % width;
      const auto y = static_cast<double>(row), x = static_cast<double>(column);
      const double wave = std::sin(0.7 * y + 0.05 * static_cast<double>(t)) *
                          std::cos(0.5 * x - 0.03 * static_cast<double>(t));
      stream.levels.push_back(static_cast<float>(0.5 + 0.4 * wave));
    }
  }
  return stream;
}

NextFrameSource::NextFrameSource(const FrameStream* frames)
    : ExampleSource(FrameFields(*frames), ExampleOrder(frames->size() - 1)), frames_(frames) {}

void NextFrameSource::WriteFloats(int field, const Draw& draw, absl::Span<float> out) const {
  const int64_t frame = draw.example + field;  // field 1 is the next one
  std::copy_n(frames_->levels.begin() + frame * frames_->pixels(), frames_->pixels(), out.begin());
}

}  // namespace pipelab
