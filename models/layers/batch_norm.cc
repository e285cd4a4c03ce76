// Runs what batch_norm_spec.h describes. x_MC, y_MC.
#include <memory>
#include <utility>

#include "models/layers/layer.h"
#include "models/layers/makers.h"
#include "models/layers/micro_batch_norm.h"
#include "models/specs/batch_norm_spec.h"

namespace pipelab {
namespace {

class BatchNorm : public UnaryLayer {
 public:
  explicit BatchNorm(const LayerSpec&) {}
  void EndStep(Backend* backend) override { norm_.EndStep(backend, statistics_); }

 private:
  using P = BatchNormParameter;

  Tensor Run(const LayerContext& ctx, const Tensor& x_MC, LayerStash* stash) override;
  Tensor InputGradient(const LayerContext& ctx, const Tensor& x_MC, Tensor dy,
                       LayerStash* stash) override;
  void WeightGradient(const LayerContext& ctx, const Tensor& x_MC, LayerStash* stash) override;

  MicroBatchNorm norm_;
};

Tensor BatchNorm::Run(const LayerContext& ctx, const Tensor& x_MC, LayerStash* stash) {
  const Parameter &gamma = parameters_[P::kGamma], &beta = parameters_[P::kBeta];
  Tensor mean_C, variance_C;
  if (!ctx.training) {  // inputs are not written to
    Tensor y_MC = ctx.backend->Allocate(x_MC.shape());
    ctx.backend->Copy(x_MC, y_MC);
    return norm_.Forward(ctx, y_MC, gamma, beta, statistics_, &mean_C, &variance_C);
  }
  Tensor y_MC = norm_.Forward(ctx, x_MC, gamma, beta, statistics_, &mean_C, &variance_C);
  stash->tensors = {std::move(mean_C), std::move(variance_C)};
  return y_MC;
}

Tensor BatchNorm::InputGradient(const LayerContext& ctx, const Tensor& x_MC, Tensor dy,
                                LayerStash* stash) {
  std::vector<Tensor> parts;
  norm_.InputGradient(ctx, dy, x_MC, parameters_[P::kGamma], stash->tensors[0], stash->tensors[1],
                      &parts);
  stash->tensors = std::move(parts);
  return dy;
}

void BatchNorm::WeightGradient(const LayerContext& ctx, const Tensor&, LayerStash* stash) {
  MicroBatchNorm::WeightGradient(ctx, stash->tensors[0], stash->tensors[1], parameters_[P::kGamma],
                                 parameters_[P::kBeta]);
  stash->tensors.clear();
}

}  // namespace

std::unique_ptr<Layer> MakeBatchNorm(const LayerSpec& spec) {
  return std::make_unique<BatchNorm>(spec);
}

}  // namespace pipelab
