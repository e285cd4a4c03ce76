#include "models/specs/composer_kernels.h"

#include <algorithm>
#include <cstdint>
#include <initializer_list>

#include "models/specs/change_costs.h"
#include "models/specs/gpt_head_spec.h"
#include "models/specs/megatron_operations.h"

namespace pipelab {
namespace {

// Megatron-LM's kernels of these sizes: a mask is a byte a number.
void DropDropout(int64_t numbers, LayerOperations* ops) {
  const int64_t alone = 2 * numbers + numbers / 2, with_sum = 3 * numbers + numbers / 2;
  for (OperationPass* pass : {&ops->forward, &ops->backward_input, &ops->backward_weight}) {
    const auto is_dropout = [&](const Operation& o) {
      return o.kind == OperationKind::kElementwise && o.numbers == alone;
    };
    pass->erase(std::remove_if(pass->begin(), pass->end(), is_dropout), pass->end());
    for (Operation& o : *pass) {
      if (o.kind == OperationKind::kElementwise && o.numbers == with_sum) o.numbers = 3 * numbers;
    }
  }
}

void ReplaceLoss(std::initializer_list<int64_t> by, OperationPass* pass) {
  const auto is_loss = [](const Operation& o) { return o.kind == OperationKind::kLoss; };
  pass->erase(std::remove_if(pass->begin(), pass->end(), is_loss), pass->end());
  for (const int64_t n : by) pass->push_back(MemoryOperation(OperationKind::kLoss, n));
}

void ChangeLoss(LayerSpec* head) {
  const int64_t tokens = head->input_shapes[0][0], hidden = head->input_shapes[0][1];
  int64_t words = 0;
  for (const ParameterSpec& p : head->parameters) words = std::max(words, p.size() / hidden);
  const auto logits = [=](int64_t samples) { return samples * tokens * words; };
  ChangeOperations(head, [=](int64_t samples, TensorParallel, LayerOperations* ops) {
    const int64_t n = logits(samples);
    ReplaceLoss({n}, &ops->forward);
    ReplaceLoss({2 * n, /*metrics*/ 3 * n, 4 * n, 3 * n, 4 * n}, &ops->backward_input);
  });
  // Logits in 2 bytes, which are kept in place of a softmax in 4. The metrics' tensors come when
  // the backward has let go of all else.
  ChangeCosts(head, [=](int64_t samples, TensorParallel, LayerCosts* costs) {
    const Bytes two_bytes = FloatBytes(logits(samples));
    costs->kept -= two_bytes;
    costs->forward_peak -= two_bytes + two_bytes;
  });
}

// A copy of two numbers takes the place of each of Megatron-LM's sums, which has three.
void CopyGradients(OperationPass* pass) {
  for (Operation& o : *pass) {
    if (o.of_product) o.numbers = o.numbers / 3 * 2;
  }
}

}  // namespace

ModelGraph WithComposerKernels(ModelGraph graph) {
  for (LayerSpec& layer : graph.layers) {
    if (layer.split.operations) {
      ChangeOperations(&layer, [](int64_t, TokenSlice, TensorParallel, LayerOperations* ops) {
        CopyGradients(&ops->backward_weight);
      });
    }
    if (layer.kind == kGptHead) {
      ChangeLoss(&layer);
      continue;
    }
    const int64_t numbers = layer.output_shape[0] * layer.output_shape[1];
    ChangeOperations(&layer, [numbers](int64_t samples, TensorParallel, LayerOperations* ops) {
      DropDropout(samples * numbers, ops);
    });
  }
  return graph;
}

}  // namespace pipelab
