// Numbers of the data set as a layer: what a branch of dense features starts with. What it costs;
// data_input.cc runs it.
//
//   LayerSpec layer = DataInputSpec({.name = "dense0/input", .field = "dense", .shape = {8}});
//
// The field's samples become rows: a field [8] has one row of 8, the output {1, 8}; longer shapes
// stay as they are. It keeps nothing and has no gradient.
#ifndef PIPELAB_MODELS_SPECS_DATA_INPUT_SPEC_H_
#define PIPELAB_MODELS_SPECS_DATA_INPUT_SPEC_H_

#include <cstdint>
#include <string>
#include <vector>

#include "models/graph/layer_spec.h"

namespace pipelab {

inline constexpr char kDataInput[] = "data_input";

struct DataInputSizes {
  std::string name;
  std::string field;           // of the data
  std::vector<int64_t> shape;  // of the field's samples
};

LayerSpec DataInputSpec(const DataInputSizes& sizes);

}  // namespace pipelab

#endif  // PIPELAB_MODELS_SPECS_DATA_INPUT_SPEC_H_
