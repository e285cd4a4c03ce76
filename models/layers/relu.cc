// Runs what relu_spec.h describes.
#include <memory>

#include "models/layers/layer.h"
#include "models/layers/makers.h"

namespace pipelab {
namespace {

class ReluLayer : public UnaryLayer {
 public:
  explicit ReluLayer(const LayerSpec&) {}

 private:
  Tensor Run(const LayerContext& ctx, const Tensor& x, LayerStash*) override {
    Tensor y = ctx.backend->Allocate(x.shape());
    ctx.backend->Relu(x, y);
    return y;
  }
  Tensor InputGradient(const LayerContext& ctx, const Tensor& x, Tensor dy, LayerStash*) override {
    ctx.backend->ReluGradient(dy, x, dy);  // x > 0 where relu(x) > 0
    return dy;
  }
  void WeightGradient(const LayerContext&, const Tensor&, LayerStash*) override {}
};

}  // namespace

std::unique_ptr<Layer> MakeRelu(const LayerSpec& spec) { return std::make_unique<ReluLayer>(spec); }

}  // namespace pipelab
