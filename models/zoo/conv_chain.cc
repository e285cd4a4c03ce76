#include "models/zoo/conv_chain.h"

#include "absl/strings/str_cat.h"
#include "models/zoo/image_builder.h"
#include "models/zoo/size_check.h"
#include "tools/base/status_macros.h"

namespace pipelab {

absl::StatusOr<GroupedModel> BuildConvChain(const ConvChainConfig& c) {
  PIPELAB_RETURN_IF_ERROR(CheckModelSize("layers", c.layers, kMostLayers));
  PIPELAB_RETURN_IF_ERROR(CheckModelSize("height", c.height, kMostImageSide));
  PIPELAB_RETURN_IF_ERROR(CheckModelSize("width", c.width, kMostImageSide));
  PIPELAB_RETURN_IF_ERROR(CheckModelSize("channels", c.channels, kMostHidden));
  PIPELAB_RETURN_IF_ERROR(CheckModelSize("kernel", c.kernel, kMostImageSide));
  ImageBuilder b("conv-chain");
  ImageAt x = b.Data(c.height, c.width, 1);
  for (int64_t i = 0; i < c.layers; ++i) {
    if (i > 0) b.NextGroup();
    ConvOptions options;
    options.out = i + 1 == c.layers ? 1 : c.channels;
    options.kernel_height = options.kernel_width = c.kernel;
    options.relu = i > 0;
    options.bias = true;
    x = b.Conv(absl::StrCat("conv", i), x, options);
  }
  b.SquaredError("loss", x);
  return b.Finish();
}

}  // namespace pipelab
