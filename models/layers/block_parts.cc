#include "models/layers/block_parts.h"

#include <functional>
#include <numeric>
#include <utility>

#include "absl/strings/str_cat.h"

namespace pipelab {

ResidualDropout::ResidualDropout(const LayerSpec& spec)
    : prefix_(absl::StrCat("dropout/", spec.name, "/step")),
      rate_(static_cast<float>(Attribute(spec, "dropout"))),
      elements_per_sample_(std::accumulate(spec.output_shape.begin(), spec.output_shape.end(),
                                           int64_t{1}, std::multiplies<int64_t>())) {}

DropoutMask ResidualDropout::Mask(const LayerContext& ctx) const {
  DropoutMask mask;
  mask.rate = ctx.training ? rate_ : 0;
  mask.rng = CounterRng(ctx.seed, absl::StrCat(prefix_, ctx.step));
  mask.offset = static_cast<uint64_t>(ctx.first_sample * elements_per_sample_);
  return mask;
}

Tensor ResidualDropout::Join(const LayerContext& ctx, const Tensor& x, Tensor branch_MC) const {
  ctx.backend->AddDropout(x, branch_MC, Mask(ctx), branch_MC);
  return branch_MC;
}

Tensor ResidualDropout::BranchGradient(const LayerContext& ctx, const Tensor& dy_MC) const {
  const DropoutMask mask = Mask(ctx);
  if (mask.rate == 0) return dy_MC;
  Tensor branch_MC = AllocateLike(ctx, dy_MC);
  ctx.backend->Dropout(dy_MC, mask, branch_MC);
  return branch_MC;
}

Tensor NormAgain(const LayerContext& ctx, const Tensor& x_MC, const Parameter& gamma,
                 const Parameter& beta, const Tensor& mean_M, const Tensor& rstd_M) {
  Tensor norm_MC = AllocateLike(ctx, x_MC);
  ctx.backend->LayerNorm(x_MC, gamma.value, beta.value, norm_MC, mean_M, rstd_M);
  return norm_MC;
}

Tensor NormResidualGradient(const LayerContext& ctx, const Tensor& dnorm_MC, const Tensor& x_MC,
                            const Parameter& gamma, const Tensor& mean_M, const Tensor& rstd_M,
                            const Tensor& dy_MC) {
  Tensor dx_MC = AllocateLike(ctx, x_MC);
  ctx.backend->LayerNormInputGradient(dnorm_MC, x_MC, gamma.value, mean_M, rstd_M, dx_MC);
  ctx.backend->Add(dx_MC, dy_MC, dx_MC);
  return dx_MC;
}

Tensor AllocateLike(const LayerContext& ctx, const Tensor& like) {
  return ctx.backend->Allocate(like.shape());
}

}  // namespace pipelab
