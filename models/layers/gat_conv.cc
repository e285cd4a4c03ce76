// Attention along edges (graph_conv_spec.h). z = x w of all sources; D columns, of H heads.
#include <memory>
#include <utility>

#include "models/layers/graph_conv.h"
#include "models/layers/makers.h"
#include "models/specs/graph_conv_spec.h"

namespace pipelab {
namespace {

class GatConv : public GraphConv {
 public:
  explicit GatConv(const LayerSpec& spec) : GraphConv(spec) {}

 private:
  using P = GatParameter;

  // The places in the stash, from one pass to the next.
  enum { kZ, kWeights, kSources, kTargets, kOutput };

  Tensor Compute(const LayerContext& ctx, const Tensor& x_SC, LayerStash* stash) override {
    Backend& b = *ctx.backend;
    const GraphIndex& index = BlockOf(ctx);
    Tensor z_SD = b.Allocate({index.num_sources, out_});
    b.Linear(x_SC, parameters_[P::kW].value, Tensor(), z_SD);
    Tensor source_SH = b.Allocate({index.num_sources, heads_});
    Tensor target_TH = b.Allocate({index.num_targets, heads_});
    b.graphs().HeadProducts(z_SD, parameters_[P::kSource].value, source_SH);
    b.graphs().HeadProducts(z_SD.Rows(0, index.num_targets), parameters_[P::kTarget].value,
                            target_TH);
    Tensor a_EH = b.Allocate({index.num_edges, heads_});
    b.graphs().EdgeSoftmax(index, kGatSlope, source_SH, target_TH, a_EH);
    Tensor y_TD = b.Allocate({index.num_targets, out_});
    b.graphs().Weighed(index, a_EH, z_SD, y_TD);
    Finish(ctx, y_TD);
    stash->tensors = {std::move(z_SD), std::move(a_EH), std::move(source_SH), std::move(target_TH),
                      relu_ ? y_TD : Tensor()};
    return y_TD;
  }

  Tensor ComputeInputGradient(const LayerContext& ctx, const Tensor& x_SC, Tensor dy,
                              LayerStash* stash) override {
    Backend& b = *ctx.backend;
    const GraphIndex& index = BlockOf(ctx);
    auto& t = stash->tensors;
    FinishGradient(ctx, t[kOutput], dy);
    Tensor dz_SD = b.Allocate({index.num_sources, out_});
    const Tensor da_EH = b.Allocate({index.num_edges, heads_});
    b.graphs().WeighedGradient(index, t[kWeights], t[kZ], dy, da_EH, dz_SD);
    Tensor dsource_SH = b.Allocate({index.num_sources, heads_});
    Tensor dtarget_TH = b.Allocate({index.num_targets, heads_});
    b.graphs().EdgeSoftmaxGradient(index, kGatSlope, t[kSources], t[kTargets], t[kWeights], da_EH,
                                   dsource_SH, dtarget_TH);
    b.graphs().HeadProductsInputGradient(dsource_SH, parameters_[P::kSource].value, dz_SD);
    b.graphs().HeadProductsInputGradient(dtarget_TH, parameters_[P::kTarget].value,
                                         dz_SD.Rows(0, index.num_targets));
    Tensor dx_SC;
    if (input_gradient_) {
      dx_SC = b.Allocate(x_SC.shape());
      b.LinearInputGradient(dz_SD, parameters_[P::kW].value, dx_SC);
    }
    t = {std::move(t[kZ]), std::move(dz_SD), std::move(dsource_SH), std::move(dtarget_TH)};
    return dx_SC;
  }

  void ComputeWeightGradient(const LayerContext& ctx, const Tensor& x_SC,
                             LayerStash* stash) override {
    GraphKernels& graphs = ctx.backend->graphs();
    const auto& t = stash->tensors;
    const Tensor &z_SD = t[kZ], &dz_SD = t[1], &dsource_SH = t[2], &dtarget_TH = t[3];
    ctx.backend->LinearWeightGradient(x_SC, dz_SD, parameters_[P::kW].gradient, Tensor());
    graphs.HeadProductsWeightGradient(z_SD, dsource_SH, parameters_[P::kSource].gradient);
    graphs.HeadProductsWeightGradient(z_SD.Rows(0, dtarget_TH.dim(0)), dtarget_TH,
                                      parameters_[P::kTarget].gradient);
    stash->tensors.clear();
  }
};

}  // namespace

std::unique_ptr<Layer> MakeGatConv(const LayerSpec& spec) {
  return std::make_unique<GatConv>(spec);
}

}  // namespace pipelab
