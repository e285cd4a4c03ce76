// How a parameter starts: from its seed and its name alone, so that every partition of a model
// starts the same.
//
//   InitializeParameter(spec, /*seed=*/1, value.f32());     // stream "init/<ValueName(spec)>"
#ifndef PIPELAB_MODELS_LAYERS_INITIALIZE_H_
#define PIPELAB_MODELS_LAYERS_INITIALIZE_H_

#include <cstdint>

#include "absl/types/span.h"
#include "kernels/tensor/tensor.h"
#include "models/graph/layer_spec.h"

namespace pipelab {

// `value` has spec.size() elements: CHECKed.
void InitializeParameter(const ParameterSpec& spec, uint64_t seed, absl::Span<float> value);
// The same of a tensor, wherever it lies.
void InitializeTensor(const ParameterSpec& spec, uint64_t seed, const Tensor& value);

}  // namespace pipelab

#endif  // PIPELAB_MODELS_LAYERS_INITIALIZE_H_
