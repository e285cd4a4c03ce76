// Every second pixel of every second line: y[i, j] = x[2 i + row, 2 j + column]. The two halves of
// AmoebaNet's factorized reduction are (0, 0) and (1, 1), each with a 1 x 1 convolution behind it.
// What it costs; subsample.cc runs it.
//
//   LayerSpec layer = SubsampleSpec({"reduce2/odd", 7, 28, 28, 64, 1, 1});    // {784, 64} -> {196,
//   64}
//
// Height and width are even (CHECKed). Keeps nothing.
#ifndef PIPELAB_MODELS_SPECS_SUBSAMPLE_SPEC_H_
#define PIPELAB_MODELS_SPECS_SUBSAMPLE_SPEC_H_

#include <cstdint>
#include <string>

#include "models/graph/layer_spec.h"

namespace pipelab {

inline constexpr char kSubsample[] = "subsample";

struct SubsampleSizes {
  std::string name;
  int input = 0;
  int64_t height = 0, width = 0, channels = 0;  // of x
  int64_t row = 0, column = 0;                  // 0 or 1
};

LayerSpec SubsampleSpec(const SubsampleSizes& sizes);

}  // namespace pipelab

#endif  // PIPELAB_MODELS_SPECS_SUBSAMPLE_SPEC_H_
