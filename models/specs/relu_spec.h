// ReLU by itself, where its output has several consumers (most stand in an image_conv layer). What
// it costs; relu.cc runs it.
//
//   LayerSpec layer = ReluSpec({.name = "block3/relu", .input = 7, .shape = {784, 64}});
//
// Keeps nothing, and needs its input for the gradient.
#ifndef PIPELAB_MODELS_SPECS_RELU_SPEC_H_
#define PIPELAB_MODELS_SPECS_RELU_SPEC_H_

#include <cstdint>
#include <string>
#include <vector>

#include "models/graph/layer_spec.h"

namespace pipelab {

inline constexpr char kRelu[] = "relu";

struct ReluSizes {
  std::string name;
  int input = 0;
  std::vector<int64_t> shape;  // of a sample: {rows, channels}
};

LayerSpec ReluSpec(const ReluSizes& sizes);

}  // namespace pipelab

#endif  // PIPELAB_MODELS_SPECS_RELU_SPEC_H_
