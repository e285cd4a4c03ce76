// What layers on a graph share: their block, the exchange of rows with peers in front of them, and
// the ReLU and dropout behind them. Runs what graph_conv_spec.h describes; S sources, T targets.
//
// Where members of a group own vertices (LayerContext::graph_peers), a layer's input is the rows of
// the own ones, and its peers' come before it computes (graph_peers.h). All members meet in its
// passes.
#ifndef PIPELAB_MODELS_LAYERS_GRAPH_CONV_H_
#define PIPELAB_MODELS_LAYERS_GRAPH_CONV_H_

#include <cstdint>
#include <string>

#include "models/layers/layer.h"

namespace pipelab {

class GraphConv : public UnaryLayer {
 protected:
  explicit GraphConv(const LayerSpec& spec);

  // What a layer does, given the rows of all of its sources; its stash is as it leaves it.
  virtual Tensor Compute(const LayerContext& ctx, const Tensor& x_SC, LayerStash* stash) = 0;
  virtual Tensor ComputeInputGradient(const LayerContext& ctx, const Tensor& x_SC, Tensor dy,
                                      LayerStash* stash) = 0;
  virtual void ComputeWeightGradient(const LayerContext& ctx, const Tensor& x_SC,
                                     LayerStash* stash) = 0;

  const GraphIndex& BlockOf(const LayerContext& ctx) const;
  // ReLU and dropout of y, in place.
  void Finish(const LayerContext& ctx, const Tensor& y_TC) const;
  // Their gradient, in place; `y` is what Finish made. A number that dropout has dropped is 0
  // there, so that one comparison stands for both, and the mask need not be drawn again.
  void FinishGradient(const LayerContext& ctx, const Tensor& y_TC, const Tensor& dy_TC) const;

  const int64_t in_, out_, heads_;
  const bool relu_, input_gradient_;

 private:
  Tensor Run(const LayerContext& ctx, const Tensor& x, LayerStash* stash) final;
  Tensor InputGradient(const LayerContext& ctx, const Tensor& x, Tensor dy,
                       LayerStash* stash) final;
  void WeightGradient(const LayerContext& ctx, const Tensor& x, LayerStash* stash) final;
  DropoutMask MaskOf(const LayerContext& ctx) const;

  const std::string name_;
  const size_t block_;
  const float dropout_;
};

}  // namespace pipelab

#endif  // PIPELAB_MODELS_LAYERS_GRAPH_CONV_H_
