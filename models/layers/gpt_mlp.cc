// Runs what gpt_mlp_spec.h describes. x_MC, y_MC; M = samples * tokens.
#include <memory>
#include <utility>

#include "absl/types/optional.h"
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
  using P = GptMlpParameter;

  // Places in the stash. The forward leaves the first three; the input gradient adds the others. h
  // is the GELU's input, or the gates and values side by side; "branch" what the residual adds to
  // x.
  enum { kMean, kRstd, kH, kDh, kDbranch, kDnorm };

  Tensor Run(const LayerContext& ctx, const Tensor& x_MC, LayerStash* stash) override;
  Tensor InputGradient(const LayerContext& ctx, const Tensor& x_MC, Tensor dy,
                       LayerStash* stash) override;
  void WeightGradient(const LayerContext& ctx, const Tensor& x_MC, LayerStash* stash) override;

  const Parameter& At(int place) const { return all_.Of(parameters_, place); }

  // act(g) u of h, in a new tensor.
  Tensor Gated(const LayerContext& ctx, const Tensor& h_M2F) const;

  int64_t hidden_, inner_;
  absl::optional<GateKind> gate_;
  GeluForm gelu_;  // without a gate
  ProductRows rows_;
  ResidualDropout residual_;
  PresentParameters all_;
};

// None: a GELU.
absl::optional<GateKind> GateOf(const LayerSpec& spec) {
  switch (static_cast<FeedForwardKind>(static_cast<int>(Attribute(spec, "feed_forward")))) {
    case FeedForwardKind::kGelu:
      return absl::nullopt;
    case FeedForwardKind::kSwiGlu:
      return GateKind::kSwish;
    case FeedForwardKind::kGeGlu:
      return GateKind::kGelu;
  }
  return absl::nullopt;
}

GptMlp::GptMlp(const LayerSpec& spec)
    : hidden_(spec.output_shape[1]),
      inner_(WholeAttribute(spec, "inner")),
      gate_(GateOf(spec)),
      gelu_(spec.attributes.count("exact_gelu") > 0 ? GeluForm::kErf : GeluForm::kTanh),
      rows_(spec),
      residual_(spec),
      all_(spec, {"gamma", "beta", "w1", "b1", "w2", "b2"}) {}

Tensor GptMlp::Gated(const LayerContext& ctx, const Tensor& h_M2F) const {
  Tensor gated_MF = ctx.backend->Allocate({h_M2F.dim(0), inner_});
  ctx.backend->Gate(*gate_, h_M2F, gated_MF);
  return gated_MF;
}

Tensor GptMlp::Run(const LayerContext& ctx, const Tensor& x_MC, LayerStash* stash) {
  Backend& b = *ctx.backend;
  const int64_t m = x_MC.dim(0);
  Tensor mean_M = AllocateMeans(ctx, At(P::kBeta), m),
         rstd_M = AllocateDeviations(ctx, At(P::kGamma), m);
  Tensor norm_MC = NormAgain(ctx, x_MC, At(P::kGamma), At(P::kBeta), mean_M, rstd_M);
  norm_MC = rows_.Gather(ctx, std::move(norm_MC));
  Tensor h_MF = b.Allocate({rows_.all(m), (gate_.has_value() ? 2 : 1) * inner_}), active_MF;
  if (gate_.has_value()) {
    b.Linear(norm_MC, At(P::kW1).value, At(P::kB1).value, h_MF);
    norm_MC = Tensor();
    active_MF = Gated(ctx, h_MF);
  } else if (gelu_ == GeluForm::kErf) {
    active_MF = AllocateLike(ctx, h_MF);
    b.Linear(norm_MC, At(P::kW1).value, At(P::kB1).value, h_MF);
    norm_MC = Tensor();
    b.Gelu(h_MF, active_MF, gelu_);
  } else {
    active_MF = AllocateLike(ctx, h_MF);
    b.LinearGelu(norm_MC, At(P::kW1).value, At(P::kB1).value, h_MF, active_MF);
    norm_MC = Tensor();
  }
  Tensor branch_MC = b.Allocate({rows_.all(m), hidden_});
  b.Linear(active_MF, At(P::kW2).value, BiasOfOne(ctx, At(P::kB2)), branch_MC);
  active_MF = Tensor();
  branch_MC = rows_.Sum(ctx, std::move(branch_MC));
  stash->tensors = {std::move(mean_M), std::move(rstd_M), std::move(h_MF)};
  return residual_.Join(ctx, x_MC, std::move(branch_MC));
}

Tensor GptMlp::InputGradient(const LayerContext& ctx, const Tensor& x_MC, Tensor dy,
                             LayerStash* stash) {
  Backend& b = *ctx.backend;
  std::vector<Tensor>& kept = stash->tensors;
  Tensor dbranch_MC = rows_.Gather(ctx, residual_.BranchGradient(ctx, dy));
  Tensor dh_MF;
  if (gate_.has_value()) {
    const Tensor dgated_MF = b.Allocate({kept[kH].dim(0), inner_});
    b.LinearInputGradient(dbranch_MC, At(P::kW2).value, dgated_MF);
    dh_MF = AllocateLike(ctx, kept[kH]);
    b.GateGradient(*gate_, dgated_MF, kept[kH], dh_MF);
  } else if (gelu_ == GeluForm::kErf) {
    dh_MF = AllocateLike(ctx, kept[kH]);
    b.LinearInputGradient(dbranch_MC, At(P::kW2).value, dh_MF);
    b.GeluGradient(dh_MF, kept[kH], dh_MF, gelu_);
  } else {
    dh_MF = AllocateLike(ctx, kept[kH]);
    b.LinearGeluInputGradient(dbranch_MC, At(P::kW2).value, kept[kH], dh_MF);
  }
  Tensor dnorm_MC = b.Allocate({rows_.all(x_MC.dim(0)), hidden_});
  b.LinearInputGradient(dh_MF, At(P::kW1).value, dnorm_MC);
  dnorm_MC = rows_.Sum(ctx, std::move(dnorm_MC));
  Tensor dx_MC = NormResidualGradient(ctx, dnorm_MC, x_MC, At(P::kGamma), kept[kMean], kept[kRstd],
                                      residual_.Around(dy));
  if (At(P::kGamma).value.empty()) dnorm_MC = Tensor();  // dx itself
  kept.insert(kept.end(), {std::move(dh_MF), std::move(dbranch_MC), std::move(dnorm_MC)});
  return dx_MC;
}

void GptMlp::WeightGradient(const LayerContext& ctx, const Tensor& x_MC, LayerStash* stash) {
  Backend& b = *ctx.backend;
  std::vector<Tensor>& kept = stash->tensors;
  // Largest first, each freed before the next is allocated. h has no use but gelu(h), which takes
  // its place, or what its gates let through.
  if (gate_.has_value()) {
    kept[kH] = Gated(ctx, kept[kH]);
  } else {
    b.Gelu(kept[kH], kept[kH], gelu_);
  }
  b.LinearWeightGradient(kept[kH], kept[kDbranch], At(P::kW2).gradient,
                         BiasGradientOfOne(ctx, rows_.part(), At(P::kB2)));
  kept[kH] = kept[kDbranch] = Tensor();
  NormWeightGradient(ctx, kept[kDnorm], x_MC, At(P::kGamma), At(P::kBeta), kept[kMean],
                     kept[kRstd]);
  kept[kDnorm] = Tensor();
  const Tensor norm_MC = rows_.Gather(
      ctx, NormAgain(ctx, x_MC, At(P::kGamma), At(P::kBeta), kept[kMean], kept[kRstd]));
  b.LinearWeightGradient(norm_MC, kept[kDh], At(P::kW1).gradient, At(P::kB1).gradient);
  kept.clear();
}

}  // namespace

std::unique_ptr<Layer> MakeGptMlp(const LayerSpec& spec) { return std::make_unique<GptMlp>(spec); }

}  // namespace pipelab
