// U-Net (Ronneberger et al. 2015): a contracting path, an expanding path, and skips from each level
// of the one to the same level of the other. What a pipeline makes of it: skips go straight from
// stage to stage.
//
//   UNetConfig c;  c.side = 64;  c.classes = 2;
//   PIPELAB_ASSIGN_OR_RETURN(GroupedModel m, BuildUNet(c));
//
// Convolutions keep the image's size and are followed by batch normalisation and ReLU, as most have
// it today; the up-convolutions have no bias. A class of each pixel.
// Groups: each level down, the bottom, each level up, the classifier: 2 levels + 2.
#ifndef PIPELAB_MODELS_ZOO_UNET_H_
#define PIPELAB_MODELS_ZOO_UNET_H_

#include <cstdint>

#include "absl/status/statusor.h"
#include "models/zoo/layer_groups.h"

namespace pipelab {

struct UNetConfig {
  int64_t levels = 4;
  int64_t width = 64;  // channels of the first level; each level down has twice as many
  int64_t classes = 2;
  int64_t side = 256, channels = 3;  // of the images; the side a multiple of 2^levels
};

// InvalidArgument names the field as an option, and its value.
absl::StatusOr<GroupedModel> BuildUNet(const UNetConfig& config);

}  // namespace pipelab

#endif  // PIPELAB_MODELS_ZOO_UNET_H_
