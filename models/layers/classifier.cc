#include "models/layers/classifier.h"

#include <utility>

#include "models/layers/classifier_spec.h"

namespace pipelab {

using P = ClassifierParameter;

Tensor Classifier::Run(const LayerContext& ctx, const Tensor& x_MC, LayerStash* stash) {
  Backend& b = *ctx.backend;
  Tensor logits_MV = b.Allocate({x_MC.dim(0), classes_});
  b.Linear(x_MC, parameters_[P::kW].value, parameters_[P::kB].value, logits_MV);
  AddPredictions(ctx, logits_MV);
  *ctx.loss_sum += b.loss().CrossEntropy(logits_MV, ctx.batch->fields[0]);
  stash->tensors = {std::move(logits_MV)};
  return Tensor();
}

Tensor Classifier::InputGradient(const LayerContext& ctx, const Tensor& x_MC, Tensor,
                                 LayerStash* stash) {
  const Tensor& logits_MV = stash->tensors[0];
  ctx.backend->loss().CrossEntropyGradient(logits_MV, ctx.batch->fields[0], ctx.loss_scale,
                                           logits_MV);
  Tensor dx_MC = ctx.backend->Allocate(x_MC.shape());
  ctx.backend->LinearInputGradient(logits_MV, parameters_[P::kW].value, dx_MC);
  return dx_MC;
}

void Classifier::WeightGradient(const LayerContext& ctx, const Tensor& x_MC, LayerStash* stash) {
  ctx.backend->LinearWeightGradient(x_MC, stash->tensors[0], parameters_[P::kW].gradient,
                                    parameters_[P::kB].gradient);
  stash->tensors.clear();
}

}  // namespace pipelab
