// U-Net's up-convolution: each pixel becomes 2 x 2, a transposed convolution with kernel 2 x 2 and
// stride 2, without a bias. What it costs; up_conv.cc runs it.
//
//   LayerSpec layer = UpConvSpec({"up1/up", 7, 14, 14, 128, 64});      // {196, 128} -> {784, 64}
//
// It is the input gradient of the convolution that goes the other way. Keeps nothing but its input.
#ifndef PIPELAB_MODELS_SPECS_UP_CONV_SPEC_H_
#define PIPELAB_MODELS_SPECS_UP_CONV_SPEC_H_

#include <cstdint>
#include <string>

#include "models/graph/layer_spec.h"

namespace pipelab {

inline constexpr char kUpConv[] = "up_conv";

struct UpConvSizes {
  std::string name;
  int input = 0;
  int64_t height = 0, width = 0;  // of x
  int64_t in = 0, out = 0;        // channels
};

// One parameter: w [2, 2, out, in].
LayerSpec UpConvSpec(const UpConvSizes& sizes);

}  // namespace pipelab

#endif  // PIPELAB_MODELS_SPECS_UP_CONV_SPEC_H_
