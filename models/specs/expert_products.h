// What layers with experts ask of a device, ours and Megatron-LM's alike.
#ifndef PIPELAB_MODELS_SPECS_EXPERT_PRODUCTS_H_
#define PIPELAB_MODELS_SPECS_EXPERT_PRODUCTS_H_

#include <algorithm>
#include <cstdint>
#include <initializer_list>

#include "models/graph/collective.h"
#include "models/graph/cost_math.h"
#include "models/graph/operation.h"
#include "models/graph/tensor_parallel.h"
#include "tools/base/units.h"

namespace pipelab {

// A product of rows [rows, k] [k, n] in as many parts as experts have some, evenly; in the weight
// gradient each part is a product of its own size too, whose result is `written` times as many
// numbers: 1, or more where it is added to what is there.
inline void AddExpertProducts(int64_t rows, int64_t n, int64_t k, int64_t experts, int64_t written,
                              LayerOperations* ops) {
  if (rows == 0 || experts == 0) return;
  const int64_t hit = std::min(rows, experts), of_each = (rows + hit - 1) / hit;
  const auto product = [&](int64_t m, int64_t columns, int64_t inner, int64_t weights) {
    Operation operation = MatmulOperation(m, columns, inner);
    operation.flops = MatmulFlops(rows, n, k);
    operation.numbers = rows * k + hit * k * n * weights + rows * n;
    operation.groups = hit;
    return operation;
  };
  ops->forward.push_back(product(of_each, n, k, 1));
  ops->backward_input.push_back(product(of_each, k, n, 1));
  ops->backward_input.back().backward = true;
  ops->backward_weight.push_back(SumsRows(product(k, n, of_each, written)));
}

// The gradient of a bias reads that of its product.
inline void AddBiasGradients(bool biases, std::initializer_list<int64_t> numbers,
                             LayerOperations* ops) {
  for (const int64_t n : numbers) {
    if (biases) ops->backward_weight.push_back(ElementwiseOperation(n));
  }
}

// Rows go to their experts and come back, and so do gradients: `bytes` of what a device has.
inline void AddExchanges(Bytes bytes, TensorCollectives* collectives) {
  for (auto* pass : {&collectives->forward, &collectives->backward_input}) {
    pass->insert(pass->end(), 2, {Collective::kAllToAll, bytes});
  }
}

}  // namespace pipelab

#endif  // PIPELAB_MODELS_SPECS_EXPERT_PRODUCTS_H_
