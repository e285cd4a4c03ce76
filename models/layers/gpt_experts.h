// The layer of gpt_experts_spec.h. x_MC, y_MC; M = samples * tokens; R rows of choices, of which
// the experts of this device get N: all R, or those of all devices that divide experts.
//
// Private to gpt_experts.cc and gpt_experts_parts.cc.
#ifndef PIPELAB_MODELS_LAYERS_GPT_EXPERTS_H_
#define PIPELAB_MODELS_LAYERS_GPT_EXPERTS_H_

#include <cstdint>
#include <utility>

#include "absl/types/optional.h"
#include "kernels/backend.h"
#include "kernels/expert_kernels.h"
#include "kernels/tensor/tensor.h"
#include "models/graph/layer_spec.h"
#include "models/layers/block_parts.h"
#include "models/layers/expert_exchange.h"
#include "models/layers/layer.h"
#include "models/specs/gpt_experts_spec.h"

namespace pipelab {

class GptExperts : public UnaryLayer {
 public:
  explicit GptExperts(const LayerSpec& spec);

 private:
  using P = GptExpertsParameter;
  using Exchange = absl::optional<ExpertExchange>;  // none: all experts are here

  // Places in the stash. The forward leaves those up to the shared experts' h; the input gradient
  // puts the logits' gradient in the place of the logits, and adds the others.
  enum {
    kMean,
    kRstd,
    kLogits,
    kWeights,  // of the rows that experts here get, as the exchange has them
    kExperts,
    kPlaces,
    kBegins,
    kCounts,  // of an exchange, as kIn and kDout
    kIn,
    kH,
    kSharedH,
    kDout,
    kDh,
    kSharedDh,
    kDbranch,
    kDnorm,
    kPlacesInStash
  };

  Tensor Run(const LayerContext& ctx, const Tensor& x_MC, LayerStash* stash) override;
  Tensor InputGradient(const LayerContext& ctx, const Tensor& x_MC, Tensor dy,
                       LayerStash* stash) override;
  void WeightGradient(const LayerContext& ctx, const Tensor& x_MC, LayerStash* stash) override;

  const Parameter& At(int place) const { return all_.Of(parameters_, place); }
  bool has_shared() const { return !At(P::kSharedW1).value.empty(); }

  static Routing RoutingOf(const LayerStash& stash);
  static Exchange ExchangeOf(const LayerContext& ctx, const LayerStash& stash);
  // The routing of the rows that experts here get.
  static Routing Here(const Routing& routing, const Exchange& exchange) {
    return exchange.has_value() ? exchange->RoutingOf(routing.weights_MK) : routing;
  }
  // Each choice by itself, as if it were a token's only one.
  static Routing OneByOne(const Routing& routing) {
    return {Tensor(), Tensor(), routing.places_MK.Reshape({routing.places_MK.size(), 1}), Tensor()};
  }

  RouterShape ShapeOf(const LayerContext& ctx, int64_t rows) const;
  Routing NewRouting(const LayerContext& ctx, const RouterShape& shape) const;
  // A row for each choice.
  Tensor Choices(const LayerContext& ctx, const Routing& routing, const Tensor& x_MC) const;
  // act(g) u of h, in a new tensor.
  Tensor Gated(const LayerContext& ctx, const Tensor& h) const;
  // The sums of these rows over choices, where they came from.
  Tensor Summed(const LayerContext& ctx, const Routing& routing, const Exchange& exchange,
                Tensor rows_NC) const;
  // What leaves the experts that are here, for the rows that they get.
  Tensor OutOfExperts(const LayerContext& ctx, const Routing& here, Tensor* in_NC,
                      Tensor* h_N2F) const;
  // The gradient of what they get; `stash` gains what the weights need.
  Tensor ExpertsGradient(const LayerContext& ctx, const Routing& routing, const Exchange& exchange,
                         Tensor dout_NC, Tensor* dweights_MK, LayerStash* stash) const;
  // The weights' gradients come home, as those of choices.
  Tensor WeightsOfChoices(const LayerContext& ctx, const Routing& routing, const Exchange& exchange,
                          Tensor dweights_N1) const;
  // The shared experts, of the rows that the device routes. With rows split, those of the group.
  Tensor Shared(const LayerContext& ctx, const Tensor& norm_MC, Tensor* h) const;
  Tensor SharedGradient(const LayerContext& ctx, LayerStash* stash) const;

  const int64_t hidden_;
  const GateKind gate_;
  RouterShape router_;  // without samples and tokens
  const float balance_;
  ProductRows rows_;
  bool routes_own_;  // a device of a group has whole experts: it routes its own rows alone
  ResidualDropout residual_;
  PresentParameters all_;
};

}  // namespace pipelab

#endif  // PIPELAB_MODELS_LAYERS_GPT_EXPERTS_H_
