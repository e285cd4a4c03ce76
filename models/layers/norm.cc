// Runs what norm_spec.h describes. x_MC, y_MC; M = samples * tokens.
#include <memory>
#include <utility>

#include "models/layers/block_parts.h"
#include "models/layers/layer.h"
#include "models/layers/makers.h"
#include "models/specs/norm_spec.h"

namespace pipelab {
namespace {

class Norm : public UnaryLayer {
 public:
  explicit Norm(const LayerSpec& spec) : all_(spec, {"gamma", "beta"}) {}

 private:
  using P = NormParameter;

  // Places in the stash. The forward leaves the first two; the input gradient adds dy.
  enum { kMean, kRstd, kDy };

  Tensor Run(const LayerContext& ctx, const Tensor& x_MC, LayerStash* stash) override;
  Tensor InputGradient(const LayerContext& ctx, const Tensor& x_MC, Tensor dy,
                       LayerStash* stash) override;
  void WeightGradient(const LayerContext& ctx, const Tensor& x_MC, LayerStash* stash) override;
  const Parameter& At(int place) const { return all_.Of(parameters_, place); }

  PresentParameters all_;
};

Tensor Norm::Run(const LayerContext& ctx, const Tensor& x_MC, LayerStash* stash) {
  const int64_t m = x_MC.dim(0);
  stash->tensors = {AllocateMeans(ctx, At(P::kBeta), m), ctx.backend->AllocateFloats({m})};
  return NormAgain(ctx, x_MC, At(P::kGamma), At(P::kBeta), stash->tensors[kMean],
                   stash->tensors[kRstd]);
}

Tensor Norm::InputGradient(const LayerContext& ctx, const Tensor& x_MC, Tensor dy,
                           LayerStash* stash) {
  std::vector<Tensor>& kept = stash->tensors;
  Tensor dx_MC = AllocateLike(ctx, x_MC);
  ctx.backend->LayerNormInputGradient(dy, x_MC, At(P::kGamma).value, kept[kMean], kept[kRstd],
                                      dx_MC);
  kept.push_back(std::move(dy));
  return dx_MC;
}

void Norm::WeightGradient(const LayerContext& ctx, const Tensor& x_MC, LayerStash* stash) {
  std::vector<Tensor>& kept = stash->tensors;
  ctx.backend->LayerNormWeightGradient(kept[kDy], x_MC, kept[kMean], kept[kRstd],
                                       At(P::kGamma).gradient, At(P::kBeta).gradient);
  kept.clear();
}

}  // namespace

std::unique_ptr<Layer> MakeNorm(const LayerSpec& spec) { return std::make_unique<Norm>(spec); }

}  // namespace pipelab
