// Runs what gpt_mlp_spec.h describes. x_MC, y_MC; M = samples * tokens.
#include <memory>
#include <utility>

#include "models/layers/block_parts.h"
#include "models/layers/layer.h"
#include "models/layers/makers.h"
#include "models/layers/tensor_peers.h"
#include "models/specs/gpt_mlp_spec.h"

namespace pipelab {
namespace {

class GptMlp : public UnaryLayer {
 public:
  explicit GptMlp(const LayerSpec& spec);

 private:
  Tensor Run(const LayerContext& ctx, const Tensor& x_MC, LayerStash* stash) override;
  Tensor InputGradient(const LayerContext& ctx, const Tensor& x_MC, Tensor dy,
                       LayerStash* stash) override;
  void WeightGradient(const LayerContext& ctx, const Tensor& x_MC, LayerStash* stash) override;

  int64_t hidden_, inner_;
  ProductRows rows_;
  ResidualDropout residual_;
};

using P = GptMlpParameter;

// Places in the stash. The forward leaves the first three; the input gradient adds the others. h is
// the GELU's input, "branch" what the residual adds to x.
enum { kMean, kRstd, kH, kDh, kDbranch, kDnorm };

GptMlp::GptMlp(const LayerSpec& spec)
    : hidden_(spec.output_shape[1]),
      inner_(static_cast<int64_t>(Attribute(spec, "inner"))),
      rows_(spec),
      residual_(spec) {}

Tensor GptMlp::Run(const LayerContext& ctx, const Tensor& x_MC, LayerStash* stash) {
  Backend& b = *ctx.backend;
  const int64_t m = x_MC.dim(0);
  Tensor mean_M = b.AllocateFloats({m}), rstd_M = b.AllocateFloats({m});
  Tensor norm_MC =
      NormAgain(ctx, x_MC, parameters_[P::kGamma], parameters_[P::kBeta], mean_M, rstd_M);
  norm_MC = rows_.Gather(ctx, std::move(norm_MC));
  Tensor h_MF = b.Allocate({rows_.all(m), inner_});
  Tensor gelu_MF = AllocateLike(ctx, h_MF);
  b.LinearGelu(norm_MC, parameters_[P::kW1].value, parameters_[P::kB1].value, h_MF, gelu_MF);
  norm_MC = Tensor();
  Tensor branch_MC = b.Allocate({rows_.all(m), hidden_});
  b.Linear(gelu_MF, parameters_[P::kW2].value, BiasOfOne(ctx, parameters_[P::kB2]), branch_MC);
  gelu_MF = Tensor();
  branch_MC = rows_.Sum(ctx, std::move(branch_MC));
  stash->tensors = {std::move(mean_M), std::move(rstd_M), std::move(h_MF)};
  return residual_.Join(ctx, x_MC, std::move(branch_MC));
}

Tensor GptMlp::InputGradient(const LayerContext& ctx, const Tensor& x_MC, Tensor dy,
                             LayerStash* stash) {
  Backend& b = *ctx.backend;
  std::vector<Tensor>& kept = stash->tensors;
  Tensor dbranch_MC = rows_.Gather(ctx, residual_.BranchGradient(ctx, dy));
  Tensor dh_MF = AllocateLike(ctx, kept[kH]);
  b.LinearGeluInputGradient(dbranch_MC, parameters_[P::kW2].value, kept[kH], dh_MF);
  Tensor dnorm_MC = b.Allocate({rows_.all(x_MC.dim(0)), hidden_});
  b.LinearInputGradient(dh_MF, parameters_[P::kW1].value, dnorm_MC);
  dnorm_MC = rows_.Sum(ctx, std::move(dnorm_MC));
  Tensor dx_MC = NormResidualGradient(ctx, dnorm_MC, x_MC, parameters_[P::kGamma], kept[kMean],
                                      kept[kRstd], dy);
  kept.insert(kept.end(), {std::move(dh_MF), std::move(dbranch_MC), std::move(dnorm_MC)});
  return dx_MC;
}

void GptMlp::WeightGradient(const LayerContext& ctx, const Tensor& x_MC, LayerStash* stash) {
  Backend& b = *ctx.backend;
  std::vector<Tensor>& kept = stash->tensors;
  // Largest first, each freed before the next is allocated. h has no use but gelu(h), which takes
  // its place.
  b.Gelu(kept[kH], kept[kH]);
  b.LinearWeightGradient(kept[kH], kept[kDbranch], parameters_[P::kW2].gradient,
                         BiasGradientOfOne(ctx, rows_.part(), parameters_[P::kB2]));
  kept[kH] = kept[kDbranch] = Tensor();
  b.LayerNormWeightGradient(kept[kDnorm], x_MC, kept[kMean], kept[kRstd],
                            parameters_[P::kGamma].gradient, parameters_[P::kBeta].gradient);
  kept[kDnorm] = Tensor();
  const Tensor norm_MC =
      rows_.Gather(ctx, NormAgain(ctx, x_MC, parameters_[P::kGamma], parameters_[P::kBeta],
                                  kept[kMean], kept[kRstd]));
  b.LinearWeightGradient(norm_MC, kept[kDh], parameters_[P::kW1].gradient,
                         parameters_[P::kB1].gradient);
  kept.clear();
}

}  // namespace

std::unique_ptr<Layer> MakeGptMlp(const LayerSpec& spec) { return std::make_unique<GptMlp>(spec); }

}  // namespace pipelab
