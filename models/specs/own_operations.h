// What layer norms and residuals of this project do beside the mathematics (Operation::own).
//
//   AddOwnNormAndResidual(m * c, &ops);       // of an attention or MLP of m rows of c
#ifndef PIPELAB_MODELS_SPECS_OWN_OPERATIONS_H_
#define PIPELAB_MODELS_SPECS_OWN_OPERATIONS_H_

#include <algorithm>
#include <cstdint>

#include "models/graph/cost_math.h"
#include "models/graph/operation.h"

namespace pipelab {

// The gradients of gamma and beta are a pass of their own, and the norm's output, which the weight
// gradient behind it takes, may come again instead of being kept.
inline void AddOwnNormWeights(int64_t size, bool again, LayerOperations* ops) {
  const Operation pass = OwnOperation(OperationKind::kLayerNorm, 2 * size);
  ops->backward_weight.push_back(pass);
  if (again) ops->backward_weight.push_back(pass);
}

// The residual's gradient is added in a pass of its own as well: two numbers more.
inline void AddOwnNormAndResidual(int64_t size, LayerOperations* ops, bool residual = true,
                                  bool norm = true) {
  if (norm) AddOwnNormWeights(size, /*again=*/true, ops);
  if (residual) ops->backward_input.push_back(OwnOperation(OperationKind::kElementwise, 2 * size));
}

// What adding a parameter to m rows of c takes: a block of them and a column of ones
// (models/layers/block_parts.h).
inline Bytes RowsAtOnceBytes(int64_t m, int64_t c, NumberWidth width) {
  constexpr int64_t kRows = 64;
  return width(std::min(kRows, m) * (c + 1));
}

}  // namespace pipelab

#endif  // PIPELAB_MODELS_SPECS_OWN_OPERATIONS_H_
