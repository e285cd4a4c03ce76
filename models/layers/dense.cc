// Runs what dense_spec.h describes. x_MK, y_MN; h is the activation's input.
#include <cstdint>
#include <memory>
#include <utility>

#include "models/layers/layer.h"
#include "models/layers/makers.h"
#include "models/specs/dense_spec.h"

namespace pipelab {
namespace {

class Dense : public UnaryLayer {
 public:
  explicit Dense(const LayerSpec& spec);

 private:
  using P = DenseParameter;

  Tensor Run(const LayerContext& ctx, const Tensor& x_MK, LayerStash* stash) override;
  Tensor InputGradient(const LayerContext& ctx, const Tensor& x_MK, Tensor dy,
                       LayerStash* stash) override;
  void WeightGradient(const LayerContext& ctx, const Tensor& x_MK, LayerStash* stash) override;

  int64_t out_;
  Activation activation_;
  GeluForm gelu_;
  float scale_;
};

Dense::Dense(const LayerSpec& spec)
    : out_(spec.output_shape.back()),
      activation_(ActivationOf(spec)),
      gelu_(spec.attributes.count("exact_gelu") > 0 ? GeluForm::kErf : GeluForm::kTanh),
      scale_(spec.attributes.count("scale") > 0 ? static_cast<float>(Attribute(spec, "scale"))
                                                : 1.0f) {}

Tensor Dense::Run(const LayerContext& ctx, const Tensor& x_MK, LayerStash* stash) {
  Backend& b = *ctx.backend;
  Tensor h_MN = b.Allocate({x_MK.dim(0), out_});
  b.Linear(x_MK, parameters_[P::kW].value, parameters_[P::kB].value, h_MN);
  Tensor y_MN = activation_ == Activation::kNone ? h_MN : b.Allocate(h_MN.shape());
  if (activation_ == Activation::kGelu) b.Gelu(h_MN, y_MN, gelu_);
  if (activation_ == Activation::kRelu) b.Relu(h_MN, y_MN);
  if (scale_ != 1) b.optimizer().Scale(y_MN, scale_);
  if (activation_ == Activation::kNone) return y_MN;
  stash->tensors = {std::move(h_MN)};
  return y_MN;
}

Tensor Dense::InputGradient(const LayerContext& ctx, const Tensor& x_MK, Tensor dy,
                            LayerStash* stash) {
  Backend& b = *ctx.backend;
  if (scale_ != 1) b.optimizer().Scale(dy, scale_);
  if (activation_ == Activation::kGelu) b.GeluGradient(dy, stash->tensors[0], dy, gelu_);
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

}  // namespace

std::unique_ptr<Layer> MakeDense(const LayerSpec& spec) { return std::make_unique<Dense>(spec); }

}  // namespace pipelab
