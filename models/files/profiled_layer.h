// The costs of one listed layer as a LayerSpec has them.
//
//   LayerSpec layer = ProfiledLayer(listed, /*input_numbers=*/1024, /*bytes_per_number=*/4);
//   layer.costs(/*samples=*/8).forward_peak;
//
// `inputs`, `input_shapes` and `output_shape` are left to the graph.
#ifndef PIPELAB_MODELS_FILES_PROFILED_LAYER_H_
#define PIPELAB_MODELS_FILES_PROFILED_LAYER_H_

#include <cstdint>

#include "models/files/layer_list.h"
#include "models/graph/layer_spec.h"
#include "tools/base/units.h"

namespace pipelab {

// How many numbers have these bytes, rounded up.
inline int64_t NumbersIn(Bytes bytes, int bytes_per_number) {
  return (bytes.value() + bytes_per_number - 1) / bytes_per_number;
}

// `input_numbers`: of a sample, of all inputs together.
LayerSpec ProfiledLayer(const ListedLayer& listed, int64_t input_numbers, int bytes_per_number);

}  // namespace pipelab

#endif  // PIPELAB_MODELS_FILES_PROFILED_LAYER_H_
