// VGG-16 (Simonyan and Zisserman, "Very Deep Convolutional Networks", 2015, configuration D),
// without its dropout.
//
//   PIPELAB_ASSIGN_OR_RETURN(GroupedModel m, BuildVgg16({}));
//   m.graph.num_parameters();                      // 138,357,544; nothing is allocated
//
// Groups: one for each of the 16 layers with weights; a pooling belongs to the one before it.
#ifndef PIPELAB_MODELS_ZOO_VGG_H_
#define PIPELAB_MODELS_ZOO_VGG_H_

#include <cstdint>

#include "absl/status/statusor.h"
#include "models/zoo/layer_groups.h"

namespace pipelab {

struct VggConfig {
  int64_t width = 64;    // channels of the first convolutions
  int64_t dense = 4096;  // of the two dense layers
  int64_t classes = 1000;
  int64_t side = 224, channels = 3;  // of the images; the side a multiple of 32
};

// InvalidArgument names the field as an option, and its value.
absl::StatusOr<GroupedModel> BuildVgg16(const VggConfig& config);

}  // namespace pipelab

#endif  // PIPELAB_MODELS_ZOO_VGG_H_
