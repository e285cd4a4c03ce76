// A fully connected layer: y = scale act(x w + b). What it costs; dense.cc runs it.
//
//   LayerSpec layer = DenseSpec({.name = "join/dense", .input = 7, .tokens = 128, .in = 512,
//                                .out = 256, .activation = Activation::kGelu});
//
// The forward keeps the activation's input [M, out], and nothing without an activation.
#ifndef PIPELAB_MODELS_SPECS_DENSE_SPEC_H_
#define PIPELAB_MODELS_SPECS_DENSE_SPEC_H_

#include <cstdint>
#include <string>

#include "models/graph/layer_spec.h"

namespace pipelab {

inline constexpr char kDense[] = "dense";

enum class Activation : uint8_t { kNone, kGelu, kRelu };

struct DenseSizes {
  std::string name;
  int input = 0;       // index of the layer before
  int64_t tokens = 1;  // rows of a sample
  int64_t in = 0, out = 0;
  Activation activation = Activation::kNone;
  bool exact_gelu = false;  // of kGelu: erf's, not the tanh form
  double scale = 1;         // of y
  double stddev = 0.02;
};

// Places in LayerSpec::parameters and Layer::parameters_.
struct DenseParameter {
  enum { kW, kB };  // [in, out], [out]
};

LayerSpec DenseSpec(const DenseSizes& sizes);
Activation ActivationOf(const LayerSpec& dense);

}  // namespace pipelab

#endif  // PIPELAB_MODELS_SPECS_DENSE_SPEC_H_
