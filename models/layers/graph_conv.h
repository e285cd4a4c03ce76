// What layers on a graph share: their block, and the ReLU and dropout behind them. Runs what
// graph_conv_spec.h describes; S sources, T targets.
#ifndef PIPELAB_MODELS_LAYERS_GRAPH_CONV_H_
#define PIPELAB_MODELS_LAYERS_GRAPH_CONV_H_

#include <cstdint>
#include <string>

#include "models/layers/layer.h"

namespace pipelab {

class GraphConv : public UnaryLayer {
 protected:
  explicit GraphConv(const LayerSpec& spec);

  const GraphIndex& BlockOf(const LayerContext& ctx) const;
  // ReLU and dropout of y, in place.
  void Finish(const LayerContext& ctx, const Tensor& y_TC) const;
  // Their gradient, in place; `y` is what Finish made. A number that dropout has dropped is 0 there,
  // so that one comparison stands for both.
  void FinishGradient(const LayerContext& ctx, const Tensor& y_TC, const Tensor& dy_TC) const;

  const int64_t in_, out_, heads_;
  const bool relu_, input_gradient_;

 private:
  DropoutMask MaskOf(const LayerContext& ctx) const;

  const std::string name_;
  const size_t block_;
  const float dropout_;
};

}  // namespace pipelab

#endif  // PIPELAB_MODELS_LAYERS_GRAPH_CONV_H_
