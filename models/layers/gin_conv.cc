// The graph isomorphism network's layer (graph_conv_spec.h).
#include <memory>
#include <utility>

#include "models/layers/graph_conv.h"
#include "models/layers/makers.h"
#include "models/specs/graph_conv_spec.h"

namespace pipelab {
namespace {

class GinConv : public GraphConv {
 public:
  explicit GinConv(const LayerSpec& spec) : GraphConv(spec) {}

 private:
  using P = GinParameter;

  Tensor Compute(const LayerContext& ctx, const Tensor& x_SC, LayerStash* stash) override {
    Backend& b = *ctx.backend;
    const GraphIndex& index = BlockOf(ctx);
    Tensor sum_TC = b.Allocate({index.num_targets, in_});
    b.graphs().Aggregate(index, AggregateMode::kSelfAndSum, x_SC, sum_TC);
    Tensor inner_TD = b.Allocate({index.num_targets, out_});
    b.Linear(sum_TC, parameters_[P::kW1].value, parameters_[P::kB1].value, inner_TD);
    b.Relu(inner_TD, inner_TD);
    Tensor y_TD = b.Allocate(inner_TD.shape());
    b.Linear(inner_TD, parameters_[P::kW2].value, parameters_[P::kB2].value, y_TD);
    Finish(ctx, y_TD);
    stash->tensors = {std::move(sum_TC), std::move(inner_TD), relu_ ? y_TD : Tensor()};
    return y_TD;
  }

  Tensor ComputeInputGradient(const LayerContext& ctx, const Tensor& x_SC, Tensor dy,
                              LayerStash* stash) override {
    Backend& b = *ctx.backend;
    const GraphIndex& index = BlockOf(ctx);
    FinishGradient(ctx, stash->tensors[2], dy);
    Tensor dinner_TD = b.Allocate(dy.shape());
    b.LinearInputGradient(dy, parameters_[P::kW2].value, dinner_TD);
    b.ReluGradient(dinner_TD, stash->tensors[1], dinner_TD);
    Tensor dx_SC;
    if (input_gradient_) {
      const Tensor dsum_TC = b.Allocate({index.num_targets, in_});
      b.LinearInputGradient(dinner_TD, parameters_[P::kW1].value, dsum_TC);
      dx_SC = b.Allocate(x_SC.shape());
      b.graphs().AggregateGradient(index, AggregateMode::kSelfAndSum, dsum_TC, dx_SC);
    }
    stash->tensors[2] = std::move(dy);
    stash->tensors.push_back(std::move(dinner_TD));
    return dx_SC;
  }

  void ComputeWeightGradient(const LayerContext& ctx, const Tensor&, LayerStash* stash) override {
    const auto& t = stash->tensors;
    ctx.backend->LinearWeightGradient(t[1], t[2], parameters_[P::kW2].gradient,
                                      parameters_[P::kB2].gradient);
    ctx.backend->LinearWeightGradient(t[0], t[3], parameters_[P::kW1].gradient,
                                      parameters_[P::kB1].gradient);
    stash->tensors.clear();
  }
};

}  // namespace

std::unique_ptr<Layer> MakeGinConv(const LayerSpec& spec) {
  return std::make_unique<GinConv>(spec);
}

}  // namespace pipelab
