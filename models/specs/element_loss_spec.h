// Losses of single numbers: squared error (regression) and the cross-entropy of a coin whose logit
// is the input (clicks). What they cost; element_loss.cc runs them.
//
//   LayerSpec layer = ElementLossSpec({.name = "loss", .input = 9, .width = 1,
//                                      .kind = ElementLossKind::kBinaryCrossEntropy});
//
// Targets are the data's field kTargets, floats [rows * width]; from 0 to 1 for the cross-entropy.
// Keeps nothing but its input. The loss is the sum over elements (kernels/loss_kernels.h).
#ifndef PIPELAB_MODELS_SPECS_ELEMENT_LOSS_SPEC_H_
#define PIPELAB_MODELS_SPECS_ELEMENT_LOSS_SPEC_H_

#include <cstdint>
#include <string>

#include "models/graph/layer_spec.h"

namespace pipelab {

inline constexpr char kElementLoss[] = "element_loss";

enum class ElementLossKind : uint8_t { kSquaredError, kBinaryCrossEntropy };

struct ElementLossSizes {
  std::string name;
  int input = 0;      // index of the layer before: {rows, width}
  int64_t width = 1;  // numbers of a row
  ElementLossKind kind = ElementLossKind::kSquaredError;
  int64_t rows = 1;  // of a sample: pixels
};

LayerSpec ElementLossSpec(const ElementLossSizes& sizes);

}  // namespace pipelab

#endif  // PIPELAB_MODELS_SPECS_ELEMENT_LOSS_SPEC_H_
