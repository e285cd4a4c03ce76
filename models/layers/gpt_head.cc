#include "models/layers/gpt_head.h"

#include <utility>

#include "models/layers/gpt_head_spec.h"

namespace pipelab {
namespace {

using P = GptHeadParameter;

// Places in the stash. The forward leaves the first three; the input gradient writes its own over
// the logits and adds the last.
enum { kMean, kRstd, kLogits, kDnorm };

}  // namespace

GptHead::GptHead(const LayerSpec& spec) : vocabulary_(spec.data[0].limit) {}

Tensor GptHead::Run(const LayerContext& ctx, const Tensor& x_MC, LayerStash* stash) {
  Backend& b = *ctx.backend;
  const int64_t m = x_MC.dim(0);
  Tensor mean_M = b.Allocate({m}), rstd_M = b.Allocate({m});
  const Tensor norm_MC =
      NormAgain(ctx, x_MC, parameters_[P::kGamma], parameters_[P::kBeta], mean_M, rstd_M);
  Tensor logits_MV = b.Allocate({m, vocabulary_});
  b.LinearTransposed(norm_MC, parameters_[P::kTable].value, logits_MV);
  *ctx.loss_sum += b.loss().CrossEntropy(logits_MV, ctx.batch->fields[0]);
  stash->tensors = {std::move(mean_M), std::move(rstd_M), std::move(logits_MV)};
  return Tensor();
}

Tensor GptHead::InputGradient(const LayerContext& ctx, const Tensor& x_MC, Tensor,
                              LayerStash* stash) {
  Backend& b = *ctx.backend;
  std::vector<Tensor>& kept = stash->tensors;
  b.loss().CrossEntropyGradient(kept[kLogits], ctx.batch->fields[0], ctx.loss_scale, kept[kLogits]);
  Tensor dnorm_MC = AllocateLike(ctx, x_MC);
  b.LinearTransposedInputGradient(kept[kLogits], parameters_[P::kTable].value, dnorm_MC);
  Tensor dx_MC = AllocateLike(ctx, x_MC);
  b.LayerNormInputGradient(dnorm_MC, x_MC, parameters_[P::kGamma].value, kept[kMean], kept[kRstd],
                           dx_MC);
  kept.push_back(std::move(dnorm_MC));
  return dx_MC;
}

void GptHead::WeightGradient(const LayerContext& ctx, const Tensor& x_MC, LayerStash* stash) {
  Backend& b = *ctx.backend;
  std::vector<Tensor>& kept = stash->tensors;
  b.LayerNormWeightGradient(kept[kDnorm], x_MC, kept[kMean], kept[kRstd],
                            parameters_[P::kGamma].gradient, parameters_[P::kBeta].gradient);
  kept[kDnorm] = Tensor();
  const Tensor norm_MC =
      NormAgain(ctx, x_MC, parameters_[P::kGamma], parameters_[P::kBeta], kept[kMean], kept[kRstd]);
  b.LinearTransposedWeightGradient(norm_MC, kept[kLogits], parameters_[P::kTable].gradient);
  kept.clear();
}

}  // namespace pipelab
