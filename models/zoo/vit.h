// Vision Transformers (Dosovitskiy et al., "An Image Is Worth 16x16 Words", ICLR 2021): patches of
// an image, blocks of attention over all of them, norm, classifier. It judges by the class token,
// or without one by the mean of the patches, as in the paper's appendix D.4.
//
//   PIPELAB_ASSIGN_OR_RETURN(GroupedModel m, BuildVit(VitS4()));
//
// Groups: the patches, each block, the norm with what is behind it.
#ifndef PIPELAB_MODELS_ZOO_VIT_H_
#define PIPELAB_MODELS_ZOO_VIT_H_

#include <cstdint>

#include "absl/status/statusor.h"
#include "models/zoo/layer_groups.h"

namespace pipelab {

struct VitConfig {
  int64_t layers = 0;  // blocks
  int64_t hidden = 0, heads = 0;
  int64_t patch = 0;  // side; divides the image's
  int64_t side = 32, channels = 3;
  int64_t classes = 10;
  bool class_token = false;
  int64_t feed_forward = 0;  // 0: 4 hidden
  bool exact_gelu = false;   // erf's, as the published weights have it

  int64_t tokens() const { return (side / patch) * (side / patch) + (class_token ? 1 : 0); }
};

// ViT-S (12 layers of 384, 6 heads) on patches of 4 of images of 32: sizes for CIFAR.
VitConfig VitS4();
// ViT-B on patches of 16 of images of 224, 1000 classes: Table 1 of the paper.
VitConfig VitB16();

// InvalidArgument names the field as an option, and its value.
absl::StatusOr<GroupedModel> BuildVit(const VitConfig& config);

}  // namespace pipelab

#endif  // PIPELAB_MODELS_ZOO_VIT_H_
