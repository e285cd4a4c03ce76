// Runs what element_loss_spec.h describes. The loss goes to LayerContext::loss_sum.
#include <memory>

#include "models/layers/block_parts.h"
#include "models/layers/layer.h"
#include "models/layers/makers.h"
#include "models/specs/element_loss_spec.h"

namespace pipelab {
namespace {

class ElementLoss : public UnaryLayer {
 public:
  explicit ElementLoss(const LayerSpec& spec);

 private:
  Tensor Run(const LayerContext& ctx, const Tensor& x, LayerStash* stash) override;
  Tensor InputGradient(const LayerContext& ctx, const Tensor& x, Tensor dy,
                       LayerStash* stash) override;
  void WeightGradient(const LayerContext& ctx, const Tensor& x, LayerStash* stash) override;

  ElementLossKind kind_;
};

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

}  // namespace

std::unique_ptr<Layer> MakeElementLoss(const LayerSpec& spec) {
  return std::make_unique<ElementLoss>(spec);
}

}  // namespace pipelab
