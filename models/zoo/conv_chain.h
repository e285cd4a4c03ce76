// A chain of convolutions from an image to an image of the same size, as PARTIME's experiments have
// it (Meloni et al., arXiv 2210.09147; sizes from the authors' scripts): 5 x 5, 32 channels, ReLU
// in front of each but the first. The last has one channel and no ReLU behind it; the loss is the
// squared error to an image of targets, such as the next frame.
//
//   PIPELAB_ASSIGN_OR_RETURN(GroupedModel m, BuildConvChain({.layers = 30, .height = 256,
//                                                            .width = 256}));
#ifndef PIPELAB_MODELS_ZOO_CONV_CHAIN_H_
#define PIPELAB_MODELS_ZOO_CONV_CHAIN_H_

#include <cstdint>

#include "absl/status/statusor.h"
#include "models/zoo/layer_groups.h"

namespace pipelab {

struct ConvChainConfig {
  int64_t layers = 30;
  int64_t height = 0, width = 0;
  int64_t channels = 32;  // of each layer but the last
  int64_t kernel = 5;     // side
};

// A group a convolution. InvalidArgument names the field as an option, and its value.
absl::StatusOr<GroupedModel> BuildConvChain(const ConvChainConfig& config);

}  // namespace pipelab

#endif  // PIPELAB_MODELS_ZOO_CONV_CHAIN_H_
