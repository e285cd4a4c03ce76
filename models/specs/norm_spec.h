// A layer norm as a layer of its own: what ends an encoder, whose output several layers take. What
// it costs; norm.cc runs it.
//
//   LayerSpec layer = NormSpec({.name = "encoder/norm", .input = 12, .tokens = 40, .hidden = 256});
//
// Of the forward it keeps each row's mean and reciprocal deviation.
#ifndef PIPELAB_MODELS_SPECS_NORM_SPEC_H_
#define PIPELAB_MODELS_SPECS_NORM_SPEC_H_

#include <cstdint>
#include <string>

#include "models/graph/layer_spec.h"

namespace pipelab {

inline constexpr char kNorm[] = "norm";

struct NormSizes {
  std::string name;
  int input = 0;  // index of the layer before
  int64_t tokens = 0, hidden = 0;
};

// Places in LayerSpec::parameters and Layer::parameters_.
struct NormParameter {
  enum { kGamma, kBeta };  // [C], [C]
};

LayerSpec NormSpec(const NormSizes& sizes);

}  // namespace pipelab

#endif  // PIPELAB_MODELS_SPECS_NORM_SPEC_H_
