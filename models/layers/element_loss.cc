#include "models/layers/element_loss.h"

#include "models/layers/block_parts.h"

namespace pipelab {

ElementLoss::ElementLoss(const LayerSpec& spec)
    : kind_(static_cast<ElementLossKind>(static_cast<int>(Attribute(spec, "loss")))) {}

Tensor ElementLoss::Run(const LayerContext& ctx, const Tensor& x, LayerStash*) {
  LossKernels& loss = ctx.backend->loss();
  const Tensor& targets = ctx.batch->fields[0];
  AddPredictions(ctx, x);
  *ctx.loss_sum += kind_ == ElementLossKind::kSquaredError ? loss.SquaredError(x, targets)
                                                           : loss.BinaryCrossEntropy(x, targets);
  return Tensor();
}

Tensor ElementLoss::InputGradient(const LayerContext& ctx, const Tensor& x, Tensor, LayerStash*) {
  LossKernels& loss = ctx.backend->loss();
  const Tensor& targets = ctx.batch->fields[0];
  Tensor dx = AllocateLike(ctx, x);
  if (kind_ == ElementLossKind::kSquaredError) {
    loss.SquaredErrorGradient(x, targets, ctx.loss_scale, dx);
  } else {
    loss.BinaryCrossEntropyGradient(x, targets, ctx.loss_scale, dx);
  }
  return dx;
}

void ElementLoss::WeightGradient(const LayerContext&, const Tensor&, LayerStash*) {}

}  // namespace pipelab
