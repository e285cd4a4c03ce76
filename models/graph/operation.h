// What one pass of a layer asks of a device, operation by operation: a cost model turns it into
// time (pipelines/cluster/device.h).
//
//   LayerOperations ops = layer.operations(/*samples=*/4, TokenSlice());
//   ops.forward[1].flops;                   // of a matrix product
//
// These are the operations of the mathematics, one kernel each as frameworks launch them: a bias is
// part of its product, attention one operation that writes no scores, and what our kernels compute
// again to save memory is not there. `numbers` are those read and written, each once.
#ifndef PIPELAB_MODELS_GRAPH_OPERATION_H_
#define PIPELAB_MODELS_GRAPH_OPERATION_H_

#include <cstdint>
#include <vector>

#include "models/graph/cost_math.h"
#include "tools/base/units.h"

namespace pipelab {

// What efficiencies are known for. Elementwise: all that has no products (norms, activations, sums,
// losses, look-ups); its flops are not counted.
enum class OperationKind : uint8_t { kMatmul, kConvolution, kAttention, kElementwise };

struct Operation {
  OperationKind kind = OperationKind::kElementwise;
  Flops flops;
  int64_t numbers = 0;
};

// Flops of a pass are those of the layer's costs.
struct LayerOperations {
  std::vector<Operation> forward, backward_input, backward_weight;
};

// x_MK w_KN.
inline Operation MatmulOperation(int64_t m, int64_t n, int64_t k) {
  return {OperationKind::kMatmul, MatmulFlops(m, n, k), m * k + k * n + m * n};
}

inline Operation ElementwiseOperation(int64_t numbers) {
  return {OperationKind::kElementwise, Flops(0), numbers};
}

// The usual three passes of y_MN = x_MK w_KN, added to what is there.
inline void AddMatmul(int64_t m, int64_t n, int64_t k, LayerOperations* ops) {
  ops->forward.push_back(MatmulOperation(m, n, k));
  ops->backward_input.push_back(MatmulOperation(m, k, n));
  ops->backward_weight.push_back(MatmulOperation(k, n, m));
}

// Forward and input gradient of something without products.
inline void AddElementwise(int64_t forward, int64_t backward, LayerOperations* ops) {
  if (forward > 0) ops->forward.push_back(ElementwiseOperation(forward));
  if (backward > 0) ops->backward_input.push_back(ElementwiseOperation(backward));
}

}  // namespace pipelab

#endif  // PIPELAB_MODELS_GRAPH_OPERATION_H_
