// ResNets (He et al., "Deep Residual Learning for Image Recognition", 2016):
// with bottleneck blocks for ImageNet, the stride in the 3 x 3 convolution as every framework has
// it today, and with blocks of two 3 x 3 convolutions for CIFAR.
//
//   PIPELAB_ASSIGN_OR_RETURN(GroupedModel m, BuildResNet(ResNet50()));
//   m.graph.num_parameters();                      // 25,557,032; nothing is allocated
//
// Groups: the stem, each block, the classifier. Where a ReLU stands behind a sum of two, its output
// goes on to both of the next block's branches.
#ifndef PIPELAB_MODELS_ZOO_RESNET_H_
#define PIPELAB_MODELS_ZOO_RESNET_H_

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "models/zoo/layer_groups.h"

namespace pipelab {

struct ResNetConfig {
  std::vector<int64_t> blocks;  // of each part; each part but the first halves the image
  int64_t width = 64;           // channels of the stem; a block's are 4 times its inner ones
  int64_t classes = 1000;
  int64_t height = 224, image_width = 224, channels = 3;
};

ResNetConfig ResNet50();   // 3, 4, 6, 3
ResNetConfig ResNet101();  // 3, 4, 23, 3

// The paper's networks for CIFAR (section 4.2): three parts of (depth - 2) / 6 blocks with 16, 32
// and 64 channels; 20, 32, 56, 110 layers. Where a block halves the image its shortcut is a 1 x 1
// convolution, not the paper's padding with zeros: 2,752 more parameters.
absl::StatusOr<GroupedModel> BuildCifarResNet(int64_t depth, int64_t side = 32,
                                              int64_t channels = 3, int64_t classes = 10);

// InvalidArgument names the field as an option, and its value.
absl::StatusOr<GroupedModel> BuildResNet(const ResNetConfig& config);

}  // namespace pipelab

#endif  // PIPELAB_MODELS_ZOO_RESNET_H_
