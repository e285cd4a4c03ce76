// Runs what gpt_experts_spec.h describes.
#include "models/layers/gpt_experts.h"

#include <memory>
#include <utility>
#include <vector>

#include "kernels/tensor/host_values.h"
#include "models/layers/block_parts.h"
#include "models/layers/layer.h"
#include "models/layers/makers.h"
#include "models/layers/tensor_peers.h"

namespace pipelab {
namespace {

RouterShape RouterOf(const LayerSpec& spec) {
  const auto whole = [&](const char* name) { return WholeAttribute(spec, name); };
  RouterShape router;
  router.experts = whole("experts");
  router.chosen = whole("chosen");
  router.scores = whole("sigmoid") != 0 ? RouterScores::kSigmoid : RouterScores::kSoftmax;
  router.normalized = whole("normalized") != 0;
  router.scale = static_cast<float>(Attribute(spec, "scale"));
  router.capacity = whole("capacity");
  router.nodes = whole("nodes");
  router.most_nodes = whole("most_nodes");
  return router;
}

GateKind ExpertGateOf(const LayerSpec& spec) {
  const auto kind = static_cast<FeedForwardKind>(static_cast<int>(Attribute(spec, "feed_forward")));
  return kind == FeedForwardKind::kGeGlu ? GateKind::kGelu : GateKind::kSwish;
}

// Whether rows are split, and the experts are not.
bool RoutesOwn(const LayerSpec& spec) {
  for (const ParameterSpec& p : spec.parameters) {
    if (p.name == spec.name + "/w1") return spec.rows.parts > 1 && p.cut.parts == 1;
  }
  return false;
}

// A GPU is not waited for, unless it is anyway.
void CountLoads(const LayerContext& ctx, const Routing& routing) {
  if (ctx.loads == nullptr) return;
  if (!routing.begins_G1.on_host() && ctx.experts == nullptr) return;
  const std::vector<int32_t> begins = HostIds(routing.begins_G1);
  ExpertLoads loads;
  for (size_t e = 0; e + 1 < begins.size(); ++e) loads.rows.push_back(begins[e + 1] - begins[e]);
  loads.dropped = routing.places_MK.size() - begins.back();
  AddLoads(loads, ctx.loads);
}

}  // namespace

GptExperts::GptExperts(const LayerSpec& spec)
    : hidden_(spec.output_shape[1]),
      gate_(ExpertGateOf(spec)),
      router_(RouterOf(spec)),
      balance_(static_cast<float>(Attribute(spec, "balance"))),
      rows_(spec),
      routes_own_(RoutesOwn(spec)),
      residual_(spec),
      all_(spec, {"gamma", "beta", "router", "w1", "w2", "w1_shared", "w2_shared"}) {}

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

Tensor GptExperts::Run(const LayerContext& ctx, const Tensor& x_MC, LayerStash* stash) {
  Backend& b = *ctx.backend;
  const int64_t own = x_MC.dim(0);
  Tensor mean_M = AllocateMeans(ctx, At(P::kBeta), own), rstd_M = b.AllocateFloats({own});
  Tensor norm_MC = NormAgain(ctx, x_MC, At(P::kGamma), At(P::kBeta), mean_M, rstd_M);
  if (!routes_own_) norm_MC = rows_.Gather(ctx, std::move(norm_MC));
  Tensor shared_MC, shared_h;
  if (has_shared()) shared_MC = Shared(ctx, norm_MC, &shared_h);
  const RouterShape shape = ShapeOf(ctx, norm_MC.dim(0));
  Tensor logits_ME = b.Allocate({shape.rows(), shape.experts});
  b.Linear(norm_MC, At(P::kRouter).value, Tensor(), logits_ME);
  Routing routing = NewRouting(ctx, shape);
  b.experts().Route(shape, logits_ME, routing);
  CountLoads(ctx, routing);
  Tensor counts_E;
  if (ctx.experts != nullptr) counts_E = ExpertExchange::MeetCounts(ctx, routing.begins_G1);
  Tensor in_NC = Choices(ctx, routing, norm_MC), h_N2F;
  norm_MC = Tensor();
  Exchange exchange;
  if (ctx.experts != nullptr) {
    exchange.emplace(ctx, routing.begins_G1, counts_E);
    const int64_t r = in_NC.dim(0);
    Tensor weights_R1 = b.AllocateFloats({r, 1});
    b.experts().Gather(OneByOne(routing), routing.weights_MK.Reshape({r, 1}), weights_R1);
    routing.weights_MK = exchange->GoUnsorted(ctx, std::move(weights_R1));
    in_NC = exchange->Go(ctx, std::move(in_NC));
  }
  Tensor branch_MC =
      Summed(ctx, routing, exchange, OutOfExperts(ctx, Here(routing, exchange), &in_NC, &h_N2F));
  if (has_shared()) b.Add(branch_MC, shared_MC, branch_MC);
  shared_MC = Tensor();
  if (!routes_own_) branch_MC = rows_.Sum(ctx, std::move(branch_MC));
  stash->tensors = {std::move(mean_M),
                    std::move(rstd_M),
                    std::move(logits_ME),
                    std::move(routing.weights_MK),
                    std::move(routing.experts_MK),
                    std::move(routing.places_MK),
                    std::move(routing.begins_G1),
                    std::move(counts_E),
                    std::move(in_NC),
                    std::move(h_N2F),
                    std::move(shared_h)};
  return residual_.Join(ctx, x_MC, std::move(branch_MC));
}

Tensor GptExperts::InputGradient(const LayerContext& ctx, const Tensor& x_MC, Tensor dy,
                                 LayerStash* stash) {
  Backend& b = *ctx.backend;
  std::vector<Tensor>& kept = stash->tensors;
  kept.resize(kPlacesInStash);
  const Routing routing = RoutingOf(*stash);
  kept[kDbranch] = residual_.BranchGradient(ctx, dy);
  if (!routes_own_) kept[kDbranch] = rows_.Gather(ctx, std::move(kept[kDbranch]));
  const int64_t m = kept[kDbranch].dim(0);
  const RouterShape shape = ShapeOf(ctx, m);
  const Exchange exchange = ExchangeOf(ctx, *stash);
  Tensor dweights_MK;
  if (!exchange.has_value()) dweights_MK = b.AllocateFloats({m, shape.choices()});
  Tensor dout_NC = Choices(ctx, routing, kept[kDbranch]);
  if (exchange.has_value()) {
    if (!has_shared()) kept[kDbranch] = Tensor();
    dout_NC = exchange->Go(ctx, std::move(dout_NC));
  }
  Tensor dnorm_MC =
      Summed(ctx, routing, exchange,
             ExpertsGradient(ctx, routing, exchange, std::move(dout_NC), &dweights_MK, stash));
  // The weights themselves may be with the experts; their gradients have the place.
  b.experts().RouteGradient(shape, dweights_MK, kept[kLogits],
                            {dweights_MK, routing.experts_MK, routing.places_MK, routing.begins_G1},
                            balance_ * ctx.loss_scale, kept[kLogits]);
  dweights_MK = Tensor();
  // All devices of a group have this part in full, or of their own rows: then one of them adds it.
  Tensor more_MC = b.Allocate({m, hidden_});
  if (routes_own_ || AddsToSum(ctx)) {
    b.LinearInputGradient(kept[kLogits], At(P::kRouter).value, more_MC);
    b.Add(dnorm_MC, more_MC, dnorm_MC);
  }
  more_MC = Tensor();
  if (has_shared()) b.Add(dnorm_MC, SharedGradient(ctx, stash), dnorm_MC);
  if (!routes_own_) dnorm_MC = rows_.Sum(ctx, std::move(dnorm_MC));
  Tensor dx_MC =
      NormResidualGradient(ctx, dnorm_MC, x_MC, At(P::kGamma), kept[kMean], kept[kRstd], dy);
  kept[kDnorm] = std::move(dnorm_MC);
  return dx_MC;
}

void GptExperts::WeightGradient(const LayerContext& ctx, const Tensor& x_MC, LayerStash* stash) {
  Backend& b = *ctx.backend;
  std::vector<Tensor>& kept = stash->tensors;
  const Routing routing = RoutingOf(*stash);
  const Exchange exchange = ExchangeOf(ctx, *stash);
  const Routing here = Here(routing, exchange);
  const bool any = kept[kH].dim(0) > 0;
  // The rows that experts here get; nothing is exchanged again.
  const auto rows_of = [&](int stayed, const Tensor& all_MC) {
    return exchange.has_value() ? std::move(kept[stayed]) : Choices(ctx, routing, all_MC);
  };
  kept[kH] = Gated(ctx, kept[kH]);
  if (any) b.experts().Weigh(here, kept[kH]);
  Tensor rows_NC = rows_of(kDout, kept[kDbranch]);
  if (any) b.experts().ProductWeightGradient(here, kept[kH], rows_NC, At(P::kW2).gradient);
  kept[kH] = rows_NC = Tensor();
  if (has_shared()) {
    kept[kSharedH] = Gated(ctx, kept[kSharedH]);
    b.LinearWeightGradient(kept[kSharedH], kept[kDbranch], At(P::kSharedW2).gradient, Tensor());
    kept[kSharedH] = Tensor();
  }
  kept[kDbranch] = Tensor();
  b.LayerNormWeightGradient(kept[kDnorm], x_MC, kept[kMean], kept[kRstd], At(P::kGamma).gradient,
                            At(P::kBeta).gradient);
  kept[kDnorm] = Tensor();
  Tensor norm_MC = NormAgain(ctx, x_MC, At(P::kGamma), At(P::kBeta), kept[kMean], kept[kRstd]);
  if (!routes_own_) norm_MC = rows_.Gather(ctx, std::move(norm_MC));
  // The gradient is of a whole parameter: with sequence parallelism the devices' gradients are
  // summed in the end.
  if (routes_own_ || rows_.part().parts == 1 || AddsToSum(ctx)) {
    b.LinearWeightGradient(norm_MC, kept[kLogits], At(P::kRouter).gradient, Tensor());
  }
  rows_NC = rows_of(kIn, norm_MC);
  if (any) b.experts().ProductWeightGradient(here, rows_NC, kept[kDh], At(P::kW1).gradient);
  kept[kDh] = rows_NC = Tensor();
  if (has_shared()) {
    if (routes_own_) norm_MC = rows_.Gather(ctx, std::move(norm_MC));
    b.LinearWeightGradient(norm_MC, kept[kSharedDh], At(P::kSharedW1).gradient, Tensor());
  }
  kept.clear();
}

std::unique_ptr<Layer> MakeGptExperts(const LayerSpec& spec) {
  return std::make_unique<GptExperts>(spec);
}

}  // namespace pipelab
