#include "models/zoo/vgg.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "models/zoo/image_builder.h"
#include "models/zoo/size_check.h"
#include "tools/base/status_macros.h"

namespace pipelab {
namespace {

struct Part {
  int64_t convolutions, width;  // width in that of the first
};
constexpr Part kParts[] = {{2, 1}, {2, 2}, {3, 4}, {3, 8}, {3, 8}};

absl::Status CheckVgg(const VggConfig& c) {
  PIPELAB_RETURN_IF_ERROR(CheckModelSize("width", c.width, kMostHidden / 8));
  PIPELAB_RETURN_IF_ERROR(CheckModelSize("dense", c.dense, kMostHidden));
  PIPELAB_RETURN_IF_ERROR(CheckModelSize("classes", c.classes, kMostVocabulary));
  PIPELAB_RETURN_IF_ERROR(CheckModelSize("channels", c.channels, kMostHidden));
  PIPELAB_RETURN_IF_ERROR(CheckModelSize("side", c.side, kMostImageSide));
  if (c.side % 32 == 0) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("--side=", c.side, ": must be a multiple of 32, to halve five times"));
}

}  // namespace

absl::StatusOr<GroupedModel> BuildVgg16(const VggConfig& c) {
  PIPELAB_RETURN_IF_ERROR(CheckVgg(c));
  ImageBuilder b("vgg16");
  ImageAt x = b.Data(c.side, c.side, c.channels);
  for (size_t part = 0; part < 5; ++part) {
    for (int64_t i = 0; i < kParts[part].convolutions; ++i) {
      if (x.layer >= 0) b.NextGroup();
      // Each ReLU is done by who comes next: a maximum of ReLUs is the ReLU of the maximum.
      ConvOptions conv = ConvOf(c.width * kParts[part].width, 3, 1, /*relu=*/x.layer >= 0);
      conv.norm = false;
      conv.bias = true;
      x = b.Conv(absl::StrCat("conv", part + 1, "_", i + 1), x, conv);
    }
    const std::string pool = absl::StrCat("pool", part + 1);
    x = part < 4 ? b.Pool(pool, x, PoolKind::kMax, 2, 2, 0) : b.FlatMaxPool(pool, x, 2, 2);
  }
  x = b.Relu("relu", x);
  for (const char* name : {"dense1", "dense2"}) {
    b.NextGroup();
    x = b.Dense(name, x, c.dense);
  }
  b.NextGroup();
  b.Classify("classifier", x, c.classes);
  return b.Finish();
}

}  // namespace pipelab
