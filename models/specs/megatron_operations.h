// The kernels that Megatron-LM's layers have in common, by the numbers that they move. Private to
// this folder.
#ifndef PIPELAB_MODELS_SPECS_MEGATRON_OPERATIONS_H_
#define PIPELAB_MODELS_SPECS_MEGATRON_OPERATIONS_H_

#include <cstdint>
#include <initializer_list>
#include <vector>

#include "models/graph/layer_spec.h"
#include "models/graph/operation.h"

namespace pipelab {

using OperationPass = std::vector<Operation>;
using Kernels = LayerSplit::Of<LayerOperations>;

inline Operation Elementwise(int64_t numbers) { return ElementwiseOperation(numbers); }
inline Operation Norm(int64_t numbers) {
  return MemoryOperation(OperationKind::kLayerNorm, numbers);
}

// Input, output and a mask of bytes.
inline Operation Dropout(int64_t numbers) { return Elementwise(2 * numbers + numbers / 2); }

// Gradients added to what earlier micro-batches left, a kernel each.
inline void Accumulate(std::initializer_list<int64_t> sizes, OperationPass* pass) {
  for (int64_t size : sizes) pass->push_back(Elementwise(3 * size));
}

}  // namespace pipelab

#endif  // PIPELAB_MODELS_SPECS_MEGATRON_OPERATIONS_H_
