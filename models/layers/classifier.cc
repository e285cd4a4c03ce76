// Runs what classifier_spec.h describes. x_MC in, the loss out (LayerContext::loss_sum).
#include <cstdint>
#include <memory>
#include <utility>

#include "models/layers/layer.h"
#include "models/layers/makers.h"
#include "models/specs/classifier_spec.h"

namespace pipelab {
namespace {

class Classifier : public UnaryLayer {
 public:
  explicit Classifier(const LayerSpec& spec) : classes_(spec.data[0].limit) {}

 private:
  using P = ClassifierParameter;

  Tensor Run(const LayerContext& ctx, const Tensor& x_MC, LayerStash* stash) override;
  Tensor InputGradient(const LayerContext& ctx, const Tensor& x_MC, Tensor dy,
                       LayerStash* stash) override;
  void WeightGradient(const LayerContext& ctx, const Tensor& x_MC, LayerStash* stash) override;

  int64_t classes_;
};

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

}  // namespace

std::unique_ptr<Layer> MakeClassifier(const LayerSpec& spec) {
  return std::make_unique<Classifier>(spec);
}

}  // namespace pipelab
