// Inputs side by side: each row of the output is the rows of the inputs, one after the other, in
// the order of the inputs. What it costs; concat.cc runs it.
//
//   LayerSpec layer = ConcatSpec({.name = "join", .inputs = {3, 6}, .tokens = 128,
//                                 .widths = {256, 256}});          // {128, 512}
//
// Keeps nothing: each input's gradient is its columns of the output's.
#ifndef PIPELAB_MODELS_SPECS_CONCAT_SPEC_H_
#define PIPELAB_MODELS_SPECS_CONCAT_SPEC_H_

#include <cstdint>
#include <string>
#include <vector>

#include "models/graph/layer_spec.h"

namespace pipelab {

inline constexpr char kConcat[] = "concat";

struct ConcatSizes {
  std::string name;
  std::vector<int> inputs;  // indices of earlier layers
  int64_t tokens = 0;       // rows of a sample, of every input
  std::vector<int64_t> widths;
};

LayerSpec ConcatSpec(const ConcatSizes& sizes);

}  // namespace pipelab

#endif  // PIPELAB_MODELS_SPECS_CONCAT_SPEC_H_
