// The kernels that Megatron-LM's layers have in common, by the numbers that they move. Private to
// this folder.
#ifndef PIPELAB_MODELS_SPECS_MEGATRON_OPERATIONS_H_
#define PIPELAB_MODELS_SPECS_MEGATRON_OPERATIONS_H_

#include <algorithm>
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
inline void Accumulate(std::initializer_list<int64_t> sizes, OperationPass* pass,
                       bool of_products = false) {
  for (int64_t size : sizes) {
    Operation& sum = pass->emplace_back(Elementwise(3 * size));
    sum.adds_gradient = true;
    sum.of_product = of_products;
  }
}

// The same of products' weights.
inline void AccumulateWeights(std::initializer_list<int64_t> sizes, OperationPass* pass) {
  Accumulate(sizes, pass, /*of_products=*/true);
}

// This takes away what these added, of products' weights alone or of all parameters.
inline void DropGradientSums(bool of_products, OperationPass* pass) {
  pass->erase(std::remove_if(pass->begin(), pass->end(),
                             [of_products](const Operation& o) {
                               return o.adds_gradient && (o.of_product || !of_products);
                             }),
              pass->end());
}

}  // namespace pipelab

#endif  // PIPELAB_MODELS_SPECS_MEGATRON_OPERATIONS_H_
