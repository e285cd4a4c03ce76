#include "models/zoo/resnet.h"

#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "models/zoo/image_builder.h"
#include "models/zoo/size_check.h"
#include "tools/base/status_macros.h"

namespace pipelab {
namespace {

constexpr int64_t kExpansion = 4;
constexpr int64_t kMostParts = 8;

absl::Status CheckResNet(const ResNetConfig& c) {
  const int64_t parts = static_cast<int64_t>(c.blocks.size());
  PIPELAB_RETURN_IF_ERROR(CheckModelSize("parts", parts, kMostParts));
  for (int64_t blocks : c.blocks) {
    PIPELAB_RETURN_IF_ERROR(CheckModelSize("blocks", blocks, kMostLayers));
  }
  PIPELAB_RETURN_IF_ERROR(CheckModelSize("width", c.width, kMostHidden >> kMostParts));
  PIPELAB_RETURN_IF_ERROR(CheckModelSize("classes", c.classes, kMostVocabulary));
  PIPELAB_RETURN_IF_ERROR(CheckModelSize("height", c.height, kMostImageSide));
  PIPELAB_RETURN_IF_ERROR(CheckModelSize("image_width", c.image_width, kMostImageSide));
  return CheckModelSize("channels", c.channels, kMostHidden);
}

ImageAt Block(const std::string& name, const ImageAt& x, int64_t inner, int64_t stride,
              ImageBuilder* b) {
  const int64_t out = kExpansion * inner;
  ImageAt branch = b->Conv(name + "/conv1", x, ConvOf(inner, 1, 1, /*relu=*/false));
  branch = b->Conv(name + "/conv2", branch, ConvOf(inner, 3, stride, /*relu=*/true));
  branch = b->Conv(name + "/conv3", branch, ConvOf(out, 1, 1, /*relu=*/true));
  ImageAt shortcut = x;
  if (stride != 1 || x.channels != out) {
    shortcut = b->Conv(name + "/shortcut", x, ConvOf(out, 1, stride, /*relu=*/false));
  }
  return b->Relu(name + "/relu", b->Add(name + "/add", {branch, shortcut}));
}

// A block of two 3 x 3 convolutions.
ImageAt BasicBlock(const std::string& name, const ImageAt& x, int64_t out, ImageBuilder* b) {
  const int64_t stride = x.channels == out ? 1 : 2;
  ImageAt branch = b->Conv(name + "/conv1", x, ConvOf(out, 3, stride, /*relu=*/false));
  branch = b->Conv(name + "/conv2", branch, ConvOf(out, 3, 1, /*relu=*/true));
  ImageAt shortcut = x;
  if (stride == 2) {
    shortcut = b->Conv(name + "/shortcut", x, ConvOf(out, 1, 2, /*relu=*/false));
  }
  return b->Relu(name + "/relu", b->Add(name + "/add", {branch, shortcut}));
}

ResNetConfig WithBlocks(std::vector<int64_t> blocks) {
  ResNetConfig c;
  c.blocks = std::move(blocks);
  return c;
}

}  // namespace

ResNetConfig ResNet50() { return WithBlocks({3, 4, 6, 3}); }
ResNetConfig ResNet101() { return WithBlocks({3, 4, 23, 3}); }

absl::StatusOr<GroupedModel> BuildResNet(const ResNetConfig& c) {
  PIPELAB_RETURN_IF_ERROR(CheckResNet(c));
  ImageBuilder b("resnet");
  ImageAt x = b.Conv("stem/conv", b.Data(c.height, c.image_width, c.channels),
                     ConvOf(c.width, 7, 2, /*relu=*/false));
  // The maximum of ReLUs is the ReLU of the maximum, of which there are fewer.
  x = b.Relu("stem/relu", b.Pool("stem/pool", x, PoolKind::kMax, 3, 2, 1));
  for (size_t part = 0; part < c.blocks.size(); ++part) {
    for (int64_t i = 0; i < c.blocks[part]; ++i) {
      b.NextGroup();
      const int64_t stride = part > 0 && i == 0 ? 2 : 1;
      x = Block(absl::StrCat("part", part + 1, "/block", i + 1), x, c.width << part, stride, &b);
    }
  }
  b.NextGroup();
  b.Classify("classifier", b.GlobalAverage("pool", x), c.classes);
  return b.Finish();
}

absl::StatusOr<GroupedModel> BuildCifarResNet(int64_t depth, int64_t side, int64_t channels,
                                              int64_t classes) {
  PIPELAB_RETURN_IF_ERROR(CheckModelSize("depth", depth, kMostLayers));
  if (depth < 8 || depth % 6 != 2) {
    return absl::InvalidArgumentError(absl::StrCat(
        "depth=", depth, " must be 6 n + 2, such as 20, 32, 56 or 110: three parts of n blocks"));
  }
  PIPELAB_RETURN_IF_ERROR(CheckModelSize("side", side, kMostImageSide));
  PIPELAB_RETURN_IF_ERROR(CheckModelSize("channels", channels, kMostHidden));
  PIPELAB_RETURN_IF_ERROR(CheckModelSize("classes", classes, kMostVocabulary));
  ImageBuilder b(absl::StrCat("resnet-", depth));
  ImageAt x = b.Conv("stem/conv", b.Data(side, side, channels), ConvOf(16, 3, 1, /*relu=*/false));
  x = b.Relu("stem/relu", x);
  for (int part = 0; part < 3; ++part) {
    for (int64_t i = 0; i < (depth - 2) / 6; ++i) {
      b.NextGroup();
      x = BasicBlock(absl::StrCat("part", part + 1, "/block", i + 1), x, int64_t{16} << part, &b);
    }
  }
  b.NextGroup();
  b.Classify("classifier", b.GlobalAverage("pool", x), classes);
  return b.Finish();
}

}  // namespace pipelab
