// The sum of two or more inputs of one shape: residual connections and joins. What it costs; add.cc
// runs it.
//
//   LayerSpec layer = AddSpec({.name = "join", .inputs = {3, 6}, .shape = {128, 256}});
//
// Summed in the order of the inputs. Keeps nothing: each input's gradient is the output's.
#ifndef PIPELAB_MODELS_SPECS_ADD_SPEC_H_
#define PIPELAB_MODELS_SPECS_ADD_SPEC_H_

#include <cstdint>
#include <string>
#include <vector>

#include "models/graph/layer_spec.h"

namespace pipelab {

inline constexpr char kAdd[] = "add";

struct AddSizes {
  std::string name;
  std::vector<int> inputs;     // indices of earlier layers
  std::vector<int64_t> shape;  // of a sample: {tokens, hidden}
};

LayerSpec AddSpec(const AddSizes& sizes);

}  // namespace pipelab

#endif  // PIPELAB_MODELS_SPECS_ADD_SPEC_H_
