#include "models/layers/dense.h"

#include <utility>

namespace pipelab {

using P = DenseParameter;

Dense::Dense(const LayerSpec& spec)
    : out_(spec.output_shape.back()), activation_(ActivationOf(spec)) {}

Tensor Dense::Run(const LayerContext& ctx, const Tensor& x_MK, LayerStash* stash) {
  Backend& b = *ctx.backend;
  Tensor h_MN = b.Allocate({x_MK.dim(0), out_});
  b.Linear(x_MK, parameters_[P::kW].value, parameters_[P::kB].value, h_MN);
  if (activation_ == Activation::kNone) return h_MN;
  Tensor y_MN = b.Allocate(h_MN.shape());
  if (activation_ == Activation::kGelu) {
    b.Gelu(h_MN, y_MN);
  } else {
    b.Relu(h_MN, y_MN);
  }
  stash->tensors = {std::move(h_MN)};
  return y_MN;
}

Tensor Dense::InputGradient(const LayerContext& ctx, const Tensor& x_MK, Tensor dy,
                            LayerStash* stash) {
  Backend& b = *ctx.backend;
  if (activation_ == Activation::kGelu) b.GeluGradient(dy, stash->tensors[0], dy);
  if (activation_ == Activation::kRelu) b.ReluGradient(dy, stash->tensors[0], dy);
  stash->tensors.clear();
  Tensor dx_MK = b.Allocate(x_MK.shape());
  b.LinearInputGradient(dy, parameters_[P::kW].value, dx_MK);
  stash->tensors = {std::move(dy)};
  return dx_MK;
}

void Dense::WeightGradient(const LayerContext& ctx, const Tensor& x_MK, LayerStash* stash) {
  ctx.backend->LinearWeightGradient(x_MK, stash->tensors[0], parameters_[P::kW].gradient,
                                    parameters_[P::kB].gradient);
  stash->tensors.clear();
}

}  // namespace pipelab
