#include "models/layers/add.h"

#include <utility>

namespace pipelab {

Tensor Add::Forward(const LayerContext& ctx, absl::Span<const Tensor> inputs, LayerStash*) {
  Tensor y = ctx.backend->Allocate(inputs[0].shape());
  if (inputs.size() == 1) {
    ctx.backend->Copy(inputs[0], y);
    return y;
  }
  ctx.backend->Add(inputs[0], inputs[1], y);
  for (const Tensor& x : inputs.subspan(2)) ctx.backend->Add(y, x, y);
  return y;
}

std::vector<Tensor> Add::BackwardInput(const LayerContext& ctx, absl::Span<const Tensor>, Tensor dy,
                                       LayerStash*) {
  std::vector<Tensor> gradients(num_inputs_);
  for (size_t k = 1; k < num_inputs_; ++k) {
    gradients[k] = ctx.backend->Allocate(dy.shape());
    ctx.backend->Copy(dy, gradients[k]);
  }
  gradients[0] = std::move(dy);
  return gradients;
}

}  // namespace pipelab
