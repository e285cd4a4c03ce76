// Runs what gpt_experts_spec.h describes. x_MC, y_MC; M = samples * tokens; R rows of choices.
#include <memory>
#include <utility>

#include "models/layers/block_parts.h"
#include "models/layers/layer.h"
#include "models/layers/makers.h"
#include "models/layers/tensor_peers.h"
#include "models/specs/gpt_experts_spec.h"

namespace pipelab {
namespace {

class GptExperts : public UnaryLayer {
 public:
  explicit GptExperts(const LayerSpec& spec);

 private:
  Tensor Run(const LayerContext& ctx, const Tensor& x_MC, LayerStash* stash) override;
  Tensor InputGradient(const LayerContext& ctx, const Tensor& x_MC, Tensor dy,
                       LayerStash* stash) override;
  void WeightGradient(const LayerContext& ctx, const Tensor& x_MC, LayerStash* stash) override;

  const Parameter& At(int place) const { return all_.Of(parameters_, place); }

  RouterShape ShapeOf(const LayerContext& ctx, int64_t rows) const;
  Routing NewRouting(const LayerContext& ctx, const RouterShape& shape) const;
  // A row for each choice.
  Tensor Choices(const LayerContext& ctx, const Routing& routing, const Tensor& x_MC) const;
  // act(g) u of h, in a new tensor.
  Tensor Gated(const LayerContext& ctx, const Tensor& h_R2F) const;
  // The gradients of h and the choices' weights.
  Tensor GateGradient(const LayerContext& ctx, const Routing& routing, const Tensor& dbranch_MC,
                      const Tensor& h_R2F, const Tensor& dweights_MK) const;

  const int64_t hidden_, inner_;
  const GateKind gate_;
  RouterShape router_;  // without samples and tokens
  const float balance_;
  ProductRows rows_;
  ResidualDropout residual_;
  PresentParameters all_;
};

using P = GptExpertsParameter;

// Places in the stash. The forward leaves the first eight, of which the input gradient puts the
// logits' gradient in their place, and adds the others.
enum { kMean, kRstd, kLogits, kWeights, kExperts, kPlaces, kBegins, kH, kDh, kDbranch, kDnorm };

Routing RoutingOf(const LayerStash& stash) {
  const std::vector<Tensor>& kept = stash.tensors;
  return {kept[kWeights], kept[kExperts], kept[kPlaces], kept[kBegins]};
}

RouterShape RouterOf(const LayerSpec& spec) {
  const auto whole = [&](const char* name) { return WholeAttribute(spec, name); };
  RouterShape router;
  router.experts = whole("experts");
  router.chosen = whole("chosen");
  router.shared = whole("shared");
  router.scores = whole("sigmoid") != 0 ? RouterScores::kSigmoid : RouterScores::kSoftmax;
  router.normalized = whole("normalized") != 0;
  router.scale = static_cast<float>(Attribute(spec, "scale"));
  router.capacity = whole("capacity");
  router.nodes = whole("nodes");
  router.most_nodes = whole("most_nodes");
  return router;
}

GateKind GateOf(const LayerSpec& spec) {
  const auto kind = static_cast<FeedForwardKind>(static_cast<int>(Attribute(spec, "feed_forward")));
  return kind == FeedForwardKind::kGeGlu ? GateKind::kGelu : GateKind::kSwish;
}

GptExperts::GptExperts(const LayerSpec& spec)
    : hidden_(spec.output_shape[1]),
      inner_(WholeAttribute(spec, "inner")),
      gate_(GateOf(spec)),
      router_(RouterOf(spec)),
      balance_(static_cast<float>(Attribute(spec, "balance"))),
      rows_(spec),
      residual_(spec),
      all_(spec, {"gamma", "beta", "router", "w1", "w2"}) {}

RouterShape GptExperts::ShapeOf(const LayerContext& ctx, int64_t rows) const {
  RouterShape shape = router_;
  shape.samples = ctx.samples;
  shape.tokens = rows / ctx.samples;
  return shape;
}

Routing GptExperts::NewRouting(const LayerContext& ctx, const RouterShape& shape) const {
  const auto ids = [&](Shape of) {
    return ctx.backend->arena().Allocate(DataType::kInt32, std::move(of), MemoryKind::kActivation);
  };
  const int64_t m = shape.rows(), k = shape.choices();
  return {ctx.backend->AllocateFloats({m, k}), ids({m, k}), ids({m, k}), ids({shape.groups() + 1})};
}

Tensor GptExperts::Choices(const LayerContext& ctx, const Routing& routing,
                           const Tensor& x_MC) const {
  Tensor all_RC = ctx.backend->Allocate({routing.places_MK.size(), hidden_});
  ctx.backend->experts().Gather(routing, x_MC, all_RC);
  return all_RC;
}

Tensor GptExperts::Gated(const LayerContext& ctx, const Tensor& h_R2F) const {
  Tensor gated_RF = ctx.backend->Allocate({h_R2F.dim(0), inner_});
  ctx.backend->Gate(gate_, h_R2F, gated_RF);
  return gated_RF;
}

Tensor GptExperts::Run(const LayerContext& ctx, const Tensor& x_MC, LayerStash* stash) {
  Backend& b = *ctx.backend;
  const int64_t own = x_MC.dim(0), m = rows_.all(own);
  Tensor mean_M = AllocateMeans(ctx, At(P::kBeta), own), rstd_M = b.AllocateFloats({own});
  Tensor norm_MC = NormAgain(ctx, x_MC, At(P::kGamma), At(P::kBeta), mean_M, rstd_M);
  norm_MC = rows_.Gather(ctx, std::move(norm_MC));
  const RouterShape shape = ShapeOf(ctx, m);
  Tensor logits_ME = b.Allocate({m, shape.experts});
  b.Linear(norm_MC, At(P::kRouter).value, Tensor(), logits_ME);
  Routing routing = NewRouting(ctx, shape);
  b.experts().Route(shape, logits_ME, routing);
  Tensor in_RC = Choices(ctx, routing, norm_MC);
  norm_MC = Tensor();
  Tensor h_R2F = b.Allocate({in_RC.dim(0), 2 * inner_});
  b.experts().Product(routing, in_RC, At(P::kW1).value, h_R2F);
  in_RC = Tensor();
  Tensor gated_RF = Gated(ctx, h_R2F);
  b.experts().Weigh(routing, gated_RF);
  Tensor out_RC = b.Allocate({h_R2F.dim(0), hidden_});
  b.experts().Product(routing, gated_RF, At(P::kW2).value, out_RC);
  gated_RF = Tensor();
  Tensor branch_MC = b.Allocate({m, hidden_});
  b.experts().SumOfChoices(routing, out_RC, branch_MC);
  out_RC = Tensor();
  branch_MC = rows_.Sum(ctx, std::move(branch_MC));
  stash->tensors = {std::move(mean_M),
                    std::move(rstd_M),
                    std::move(logits_ME),
                    std::move(routing.weights_MK),
                    std::move(routing.experts_MK),
                    std::move(routing.places_MK),
                    std::move(routing.begins_G1),
                    std::move(h_R2F)};
  return residual_.Join(ctx, x_MC, std::move(branch_MC));
}

Tensor GptExperts::GateGradient(const LayerContext& ctx, const Routing& routing,
                                const Tensor& dbranch_MC, const Tensor& h_R2F,
                                const Tensor& dweights_MK) const {
  Backend& b = *ctx.backend;
  Tensor dout_RC = Choices(ctx, routing, dbranch_MC);
  Tensor dgated_RF = b.Allocate({h_R2F.dim(0), inner_});
  b.experts().ProductInputGradient(routing, dout_RC, At(P::kW2).value, dgated_RF);
  dout_RC = Tensor();
  b.experts().WeighGradient(routing, Gated(ctx, h_R2F), dgated_RF, dweights_MK);
  SumOverPeers(ctx, dweights_MK);
  Tensor dh_R2F = AllocateLike(ctx, h_R2F);
  b.GateGradient(gate_, dgated_RF, h_R2F, dh_R2F);
  return dh_R2F;
}

Tensor GptExperts::InputGradient(const LayerContext& ctx, const Tensor& x_MC, Tensor dy,
                                 LayerStash* stash) {
  Backend& b = *ctx.backend;
  std::vector<Tensor>& kept = stash->tensors;
  const Routing routing = RoutingOf(*stash);
  const int64_t m = rows_.all(x_MC.dim(0));
  const RouterShape shape = ShapeOf(ctx, m);
  Tensor dbranch_MC = rows_.Gather(ctx, residual_.BranchGradient(ctx, dy));
  Tensor dweights_MK = b.AllocateFloats({m, shape.choices()});
  Tensor dh_R2F = GateGradient(ctx, routing, dbranch_MC, kept[kH], dweights_MK);
  Tensor din_RC = b.Allocate({dh_R2F.dim(0), hidden_});
  b.experts().ProductInputGradient(routing, dh_R2F, At(P::kW1).value, din_RC);
  Tensor dnorm_MC = b.Allocate({m, hidden_});
  b.experts().SumOfChoices(routing, din_RC, dnorm_MC);
  din_RC = Tensor();
  b.experts().RouteGradient(shape, dweights_MK, kept[kLogits], routing, balance_ * ctx.loss_scale,
                            kept[kLogits]);
  dweights_MK = Tensor();
  // All devices have this part in full: one of them adds it.
  Tensor routed_MC = b.Allocate({m, hidden_});
  if (AddsToSum(ctx)) {
    b.LinearInputGradient(kept[kLogits], At(P::kRouter).value, routed_MC);
    b.Add(dnorm_MC, routed_MC, dnorm_MC);
  }
  routed_MC = Tensor();
  dnorm_MC = rows_.Sum(ctx, std::move(dnorm_MC));
  Tensor dx_MC =
      NormResidualGradient(ctx, dnorm_MC, x_MC, At(P::kGamma), kept[kMean], kept[kRstd], dy);
  kept.insert(kept.end(), {std::move(dh_R2F), std::move(dbranch_MC), std::move(dnorm_MC)});
  return dx_MC;
}

void GptExperts::WeightGradient(const LayerContext& ctx, const Tensor& x_MC, LayerStash* stash) {
  Backend& b = *ctx.backend;
  std::vector<Tensor>& kept = stash->tensors;
  const Routing routing = RoutingOf(*stash);
  kept[kH] = Gated(ctx, kept[kH]);
  b.experts().Weigh(routing, kept[kH]);
  b.experts().ProductWeightGradient(routing, kept[kH], Choices(ctx, routing, kept[kDbranch]),
                                    At(P::kW2).gradient);
  kept[kH] = kept[kDbranch] = Tensor();
  b.LayerNormWeightGradient(kept[kDnorm], x_MC, kept[kMean], kept[kRstd], At(P::kGamma).gradient,
                            At(P::kBeta).gradient);
  kept[kDnorm] = Tensor();
  const Tensor norm_MC = rows_.Gather(
      ctx, NormAgain(ctx, x_MC, At(P::kGamma), At(P::kBeta), kept[kMean], kept[kRstd]));
  // Of a whole parameter: with sequence parallelism the devices' gradients are summed in the end.
  if (rows_.part().parts == 1 || AddsToSum(ctx)) {
    b.LinearWeightGradient(norm_MC, kept[kLogits], At(P::kRouter).gradient, Tensor());
  }
  b.experts().ProductWeightGradient(routing, Choices(ctx, routing, norm_MC), kept[kDh],
                                    At(P::kW1).gradient);
  kept.clear();
}

}  // namespace

std::unique_ptr<Layer> MakeGptExperts(const LayerSpec& spec) {
  return std::make_unique<GptExperts>(spec);
}

}  // namespace pipelab
