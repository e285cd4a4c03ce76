// A norm as a layer of its own: what ends an encoder, whose output several layers take, or what
// Gemma 2 and 3 have behind each half block. What it costs; norm.cc runs it.
//
//   LayerSpec layer = NormSpec({.name = "encoder/norm", .input = 12, .tokens = 40, .hidden = 256});
//
// The forward keeps each row's mean and reciprocal deviation, of an RMS norm the latter.
#ifndef PIPELAB_MODELS_SPECS_NORM_SPEC_H_
#define PIPELAB_MODELS_SPECS_NORM_SPEC_H_

#include <cstdint>
#include <string>

#include "models/graph/layer_spec.h"
#include "models/specs/block_kinds.h"  // IWYU pragma: export

namespace pipelab {

inline constexpr char kNorm[] = "norm";

struct NormSizes {
  std::string name;
  int input = 0;  // index of the layer before
  int64_t tokens = 0, hidden = 0;
  NormKind kind = NormKind::kLayer;
};

// Places in LayerSpec::parameters and Layer::parameters_; an RMS norm has the first alone.
struct NormParameter {
  enum { kGamma, kBeta };  // [C], [C]
};

LayerSpec NormSpec(const NormSizes& sizes);

}  // namespace pipelab

#endif  // PIPELAB_MODELS_SPECS_NORM_SPEC_H_
