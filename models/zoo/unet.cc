#include "models/zoo/unet.h"

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "models/zoo/image_builder.h"
#include "models/zoo/size_check.h"
#include "tools/base/status_macros.h"

namespace pipelab {
namespace {

constexpr int64_t kMostLevels = 8;

absl::Status CheckUNet(const UNetConfig& c) {
  PIPELAB_RETURN_IF_ERROR(CheckModelSize("levels", c.levels, kMostLevels));
  PIPELAB_RETURN_IF_ERROR(CheckModelSize("width", c.width, kMostHidden >> kMostLevels));
  PIPELAB_RETURN_IF_ERROR(CheckModelSize("classes", c.classes, kMostVocabulary));
  PIPELAB_RETURN_IF_ERROR(CheckModelSize("channels", c.channels, kMostHidden));
  PIPELAB_RETURN_IF_ERROR(CheckModelSize("side", c.side, kMostImageSide));
  const int64_t divisor = int64_t{1} << c.levels;
  if (c.side % divisor == 0) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("--side=", c.side, ": must be a multiple of ",
                                                 divisor, ", to halve in ", c.levels, " levels"));
}

ImageAt Level(const std::string& name, const ImageAt& x, int64_t width, ImageBuilder* b) {
  const ImageAt first = b->Conv(name + "/conv1", x, ConvOf(width, 3, 1, /*relu=*/false));
  const ImageAt second = b->Conv(name + "/conv2", first, ConvOf(width, 3, 1, /*relu=*/true));
  return b->Relu(name + "/relu", second);
}

}  // namespace

absl::StatusOr<GroupedModel> BuildUNet(const UNetConfig& c) {
  PIPELAB_RETURN_IF_ERROR(CheckUNet(c));
  ImageBuilder b("unet");
  ImageAt x = b.Data(c.side, c.side, c.channels);
  std::vector<ImageAt> skips;
  for (int64_t level = 0; level < c.levels; ++level) {
    const std::string name = absl::StrCat("down", level + 1);
    skips.push_back(Level(name, x, c.width << level, &b));
    x = b.Pool(name + "/pool", skips.back(), PoolKind::kMax, 2, 2, 0);
    b.NextGroup();
  }
  x = Level("bottom", x, c.width << c.levels, &b);
  for (int64_t level = c.levels - 1; level >= 0; --level) {
    b.NextGroup();
    const std::string name = absl::StrCat("up", level + 1);
    const ImageAt up = b.UpConv(name + "/up", x, c.width << level);
    x = Level(name, b.Concat(name + "/join", {skips[level], up}), c.width << level, &b);
  }
  b.NextGroup();
  b.Classify("classifier", x, c.classes);
  return b.Finish();
}

}  // namespace pipelab
