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

GptHead::GptHead(const LayerSpec& spec)
    : vocabulary_(spec.data[0].limit), output_bias_(Attribute(spec, "output_bias") != 0) {}

void GptHead::Logits(const LayerContext& ctx, const Tensor& norm_MC,
                     const Tensor& logits_MV) const {
  const Tensor& table = parameters_[P::kTable].value;
  if (output_bias_) {
    ctx.backend->Linear(norm_MC, table, parameters_[P::kBias].value, logits_MV);
  } else {
    ctx.backend->LinearTransposed(norm_MC, table, logits_MV);
  }
}

void GptHead::LogitsInputGradient(const LayerContext& ctx, const Tensor& dlogits_MV,
                                  const Tensor& dnorm_MC) const {
  const Tensor& table = parameters_[P::kTable].value;
  if (output_bias_) {
    ctx.backend->LinearInputGradient(dlogits_MV, table, dnorm_MC);
  } else {
    ctx.backend->LinearTransposedInputGradient(dlogits_MV, table, dnorm_MC);
  }
}

void GptHead::LogitsWeightGradient(const LayerContext& ctx, const Tensor& norm_MC,
                                   const Tensor& dlogits_MV) const {
  const Tensor& dtable = parameters_[P::kTable].gradient;
  if (output_bias_) {
    ctx.backend->LinearWeightGradient(norm_MC, dlogits_MV, dtable, parameters_[P::kBias].gradient);
  } else {
    ctx.backend->LinearTransposedWeightGradient(norm_MC, dlogits_MV, dtable);
  }
}

Tensor GptHead::Run(const LayerContext& ctx, const Tensor& x_MC, LayerStash* stash) {
  Backend& b = *ctx.backend;
  const int64_t m = x_MC.dim(0);
  Tensor mean_M = b.Allocate({m}), rstd_M = b.Allocate({m});
  const Tensor norm_MC =
      NormAgain(ctx, x_MC, parameters_[P::kGamma], parameters_[P::kBeta], mean_M, rstd_M);
  Tensor logits_MV = b.Allocate({m, vocabulary_});
  Logits(ctx, norm_MC, logits_MV);
  AddPredictions(ctx, logits_MV);
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
  LogitsInputGradient(ctx, kept[kLogits], dnorm_MC);
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
  LogitsWeightGradient(ctx, norm_MC, kept[kLogits]);
  kept.clear();
}

}  // namespace pipelab
