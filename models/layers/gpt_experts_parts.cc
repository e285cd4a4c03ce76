// What the passes of gpt_experts.cc are made of.
#include <utility>
#include <vector>

#include "models/layers/gpt_experts.h"
#include "models/layers/tensor_peers.h"

namespace pipelab {

Routing GptExperts::RoutingOf(const LayerStash& stash) {
  const std::vector<Tensor>& kept = stash.tensors;
  return {kept[kWeights], kept[kExperts], kept[kPlaces], kept[kBegins]};
}

GptExperts::Exchange GptExperts::ExchangeOf(const LayerContext& ctx, const LayerStash& stash) {
  if (ctx.experts == nullptr) return absl::nullopt;
  return ExpertExchange(ctx, stash.tensors[kBegins], stash.tensors[kCounts]);
}

Tensor GptExperts::Choices(const LayerContext& ctx, const Routing& routing,
                           const Tensor& x_MC) const {
  Tensor all_RC = ctx.backend->Allocate({routing.places_MK.size(), hidden_});
  ctx.backend->experts().Gather(routing, x_MC, all_RC);
  return all_RC;
}

Tensor GptExperts::Gated(const LayerContext& ctx, const Tensor& h) const {
  Tensor gated = ctx.backend->Allocate({h.dim(0), h.dim(1) / 2});
  if (h.dim(0) > 0) ctx.backend->Gate(gate_, h, gated);
  return gated;
}

Tensor GptExperts::Summed(const LayerContext& ctx, const Routing& routing, const Exchange& exchange,
                          Tensor rows_NC) const {
  const int64_t choices = routing.places_MK.size();
  if (exchange.has_value()) rows_NC = exchange->Return(ctx, std::move(rows_NC), choices);
  Tensor sums_MC = ctx.backend->Allocate({choices / router_.choices(), hidden_});
  ctx.backend->experts().SumOfChoices(routing, rows_NC, sums_MC);
  return sums_MC;
}

Tensor GptExperts::OutOfExperts(const LayerContext& ctx, const Routing& here, Tensor* in_NC,
                                Tensor* h_N2F) const {
  Backend& b = *ctx.backend;
  const int64_t n = in_NC->dim(0);
  *h_N2F = b.Allocate({n, At(P::kW1).value.dim(2)});
  if (n > 0) b.experts().Product(here, *in_NC, At(P::kW1).value, *h_N2F);
  if (ctx.experts == nullptr) *in_NC = Tensor();
  const Tensor gated_NF = Gated(ctx, *h_N2F);
  Tensor out_NC = b.Allocate({n, hidden_});
  if (n == 0) return out_NC;
  b.experts().Weigh(here, gated_NF);
  b.experts().Product(here, gated_NF, At(P::kW2).value, out_NC);
  return out_NC;
}

Tensor GptExperts::Shared(const LayerContext& ctx, const Tensor& norm_MC, Tensor* h) const {
  Backend& b = *ctx.backend;
  Tensor in = routes_own_ ? rows_.Gather(ctx, norm_MC) : norm_MC;
  const int64_t rows = in.dim(0);
  *h = b.Allocate({rows, At(P::kSharedW1).value.dim(1)});
  b.Linear(in, At(P::kSharedW1).value, Tensor(), *h);
  in = Tensor();
  Tensor gated = Gated(ctx, *h);
  Tensor out = b.Allocate({rows, hidden_});
  b.Linear(gated, At(P::kSharedW2).value, Tensor(), out);
  gated = Tensor();
  return routes_own_ ? rows_.Sum(ctx, std::move(out)) : out;
}

Tensor GptExperts::WeightsOfChoices(const LayerContext& ctx, const Routing& routing,
                                    const Exchange& exchange, Tensor dweights_N1) const {
  if (!exchange.has_value()) return dweights_N1;
  const int64_t r = routing.places_MK.size();
  const Tensor home_R1 = exchange->ReturnUnsorted(ctx, std::move(dweights_N1), r);
  Tensor dweights_MK = ctx.backend->AllocateFloats({r, 1});
  ctx.backend->experts().SumOfChoices(OneByOne(routing), home_R1, dweights_MK);
  return dweights_MK;
}

Tensor GptExperts::ExpertsGradient(const LayerContext& ctx, const Routing& routing,
                                   const Exchange& exchange, Tensor dout_NC, Tensor* dweights_MK,
                                   LayerStash* stash) const {
  Backend& b = *ctx.backend;
  const Tensor& h_N2F = stash->tensors[kH];
  const Routing here = Here(routing, exchange);
  const int64_t n = h_N2F.dim(0);
  Tensor dgated_NF = b.Allocate({n, h_N2F.dim(1) / 2});
  if (n > 0) b.experts().ProductInputGradient(here, dout_NC, At(P::kW2).value, dgated_NF);
  if (exchange.has_value()) {
    stash->tensors[kDout] = std::move(dout_NC);
    *dweights_MK = b.AllocateFloats({n, 1});
  }
  dout_NC = Tensor();
  if (n > 0) b.experts().WeighGradient(here, Gated(ctx, h_N2F), dgated_NF, *dweights_MK);
  *dweights_MK = WeightsOfChoices(ctx, routing, exchange, std::move(*dweights_MK));
  if (!routes_own_) SumOverPeers(ctx, *dweights_MK);
  Tensor& dh_N2F = stash->tensors[kDh];
  dh_N2F = AllocateLike(ctx, h_N2F);
  if (n > 0) b.GateGradient(gate_, dgated_NF, h_N2F, dh_N2F);
  dgated_NF = Tensor();
  Tensor din_NC = b.Allocate({n, hidden_});
  if (n > 0) b.experts().ProductInputGradient(here, dh_N2F, At(P::kW1).value, din_NC);
  return din_NC;
}

Tensor GptExperts::SharedGradient(const LayerContext& ctx, LayerStash* stash) const {
  Backend& b = *ctx.backend;
  std::vector<Tensor>& kept = stash->tensors;
  if (routes_own_) kept[kDbranch] = rows_.Gather(ctx, std::move(kept[kDbranch]));
  const Tensor& h = kept[kSharedH];
  Tensor dgated = b.Allocate({h.dim(0), h.dim(1) / 2});
  b.LinearInputGradient(kept[kDbranch], At(P::kSharedW2).value, dgated);
  kept[kSharedDh] = AllocateLike(ctx, h);
  b.GateGradient(gate_, dgated, h, kept[kSharedDh]);
  dgated = Tensor();
  Tensor din = b.Allocate({h.dim(0), hidden_});
  b.LinearInputGradient(kept[kSharedDh], At(P::kSharedW1).value, din);
  return routes_own_ ? rows_.Sum(ctx, std::move(din)) : din;
}

}  // namespace pipelab
