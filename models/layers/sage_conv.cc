// GraphSAGE with means (graph_conv_spec.h).
#include <memory>
#include <utility>

#include "models/layers/graph_conv.h"
#include "models/layers/makers.h"
#include "models/specs/graph_conv_spec.h"

namespace pipelab {
namespace {

class SageConv : public GraphConv {
 public:
  explicit SageConv(const LayerSpec& spec) : GraphConv(spec) {}

 private:
  using P = SageParameter;

  Tensor Compute(const LayerContext& ctx, const Tensor& x_SC, LayerStash* stash) override {
    Backend& b = *ctx.backend;
    const GraphIndex& index = BlockOf(ctx);
    Tensor mean_TC = b.Allocate({index.num_targets, in_});
    b.graphs().Aggregate(index, AggregateMode::kMean, x_SC, mean_TC);
    Tensor y_TD = b.Allocate({index.num_targets, out_});
    b.Linear(x_SC.Rows(0, index.num_targets), parameters_[P::kSelf].value, Tensor(), y_TD);
    {
      const Tensor more_TD = b.Allocate(y_TD.shape());
      b.Linear(mean_TC, parameters_[P::kNeighbours].value, Tensor(), more_TD);
      b.Add(y_TD, more_TD, y_TD);
    }
    Finish(ctx, y_TD);
    stash->tensors = {std::move(mean_TC), relu_ ? y_TD : Tensor()};
    return y_TD;
  }

  Tensor ComputeInputGradient(const LayerContext& ctx, const Tensor& x_SC, Tensor dy,
                              LayerStash* stash) override {
    FinishGradient(ctx, stash->tensors[1], dy);
    Tensor dx_SC;
    if (input_gradient_) {
      Backend& b = *ctx.backend;
      const GraphIndex& index = BlockOf(ctx);
      const Tensor dmean_TC = b.Allocate({index.num_targets, in_});
      b.LinearInputGradient(dy, parameters_[P::kNeighbours].value, dmean_TC);
      dx_SC = b.Allocate(x_SC.shape());
      b.graphs().AggregateGradient(index, AggregateMode::kMean, dmean_TC, dx_SC);
      const Tensor& down_TC = dmean_TC;  // is through: now the targets' own gradient
      b.LinearInputGradient(dy, parameters_[P::kSelf].value, down_TC);
      const Tensor own_TC = dx_SC.Rows(0, index.num_targets);
      b.Add(own_TC, down_TC, own_TC);
    }
    stash->tensors[1] = std::move(dy);
    return dx_SC;
  }

  void ComputeWeightGradient(const LayerContext& ctx, const Tensor& x_SC,
                             LayerStash* stash) override {
    const Tensor &mean_TC = stash->tensors[0], &dy_TD = stash->tensors[1];
    ctx.backend->LinearWeightGradient(x_SC.Rows(0, dy_TD.dim(0)), dy_TD,
                                      parameters_[P::kSelf].gradient, Tensor());
    ctx.backend->LinearWeightGradient(mean_TC, dy_TD, parameters_[P::kNeighbours].gradient,
                                      Tensor());
    stash->tensors.clear();
  }
};

}  // namespace

std::unique_ptr<Layer> MakeSageConv(const LayerSpec& spec) {
  return std::make_unique<SageConv>(spec);
}

}  // namespace pipelab
