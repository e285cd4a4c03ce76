#include "models/layers/graph_conv.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "glog/logging.h"
#include "models/layers/graph_peers.h"

namespace pipelab {

GraphConv::GraphConv(const LayerSpec& spec)
    : in_(spec.input_shapes[0].back()),
      out_(spec.output_shape.back()),
      heads_(WholeAttribute(spec, "heads")),
      relu_(Attribute(spec, "relu") != 0),
      input_gradient_(Attribute(spec, "input_gradient") != 0),
      name_(spec.name),
      block_(static_cast<size_t>(WholeAttribute(spec, "block"))),
      dropout_(static_cast<float>(Attribute(spec, "dropout"))) {}

namespace {

// The rows that came from peers lie behind what the layer itself keeps.
Tensor TakeLast(LayerStash* stash) {
  Tensor last = std::move(stash->tensors.back());
  stash->tensors.pop_back();
  return last;
}

}  // namespace

Tensor GraphConv::Run(const LayerContext& ctx, const Tensor& x, LayerStash* stash) {
  if (ctx.graph_peers == nullptr) return Compute(ctx, x, stash);
  Tensor x_SC = ctx.graph_peers->Go(static_cast<int>(block_), x);
  Tensor y_TC = Compute(ctx, x_SC, stash);
  stash->tensors.push_back(std::move(x_SC));
  return y_TC;
}

Tensor GraphConv::InputGradient(const LayerContext& ctx, const Tensor& x, Tensor dy,
                                LayerStash* stash) {
  if (ctx.graph_peers == nullptr) return ComputeInputGradient(ctx, x, std::move(dy), stash);
  Tensor x_SC = TakeLast(stash);
  const Tensor dx_SC = ComputeInputGradient(ctx, x_SC, std::move(dy), stash);
  stash->tensors.push_back(std::move(x_SC));
  return input_gradient_ ? ctx.graph_peers->Return(static_cast<int>(block_), dx_SC) : dx_SC;
}

void GraphConv::WeightGradient(const LayerContext& ctx, const Tensor& x, LayerStash* stash) {
  if (ctx.graph_peers == nullptr) return ComputeWeightGradient(ctx, x, stash);
  const Tensor x_SC = TakeLast(stash);
  ComputeWeightGradient(ctx, x_SC, stash);
}

const GraphIndex& GraphConv::BlockOf(const LayerContext& ctx) const {
  CHECK_LT(block_, ctx.graph.size()) << name_ << ": the micro-batch has no such block";
  return ctx.graph[block_];
}

DropoutMask GraphConv::MaskOf(const LayerContext& ctx) const {
  return {dropout_, CounterRng(ctx.seed, absl::StrCat("dropout/", name_, "/", ctx.step)), 0};
}

void GraphConv::Finish(const LayerContext& ctx, const Tensor& y_TC) const {
  if (relu_) ctx.backend->Relu(y_TC, y_TC);
  if (dropout_ == 0 || !ctx.training) return;
  ctx.backend->graphs().DropRows(BlockOf(ctx).vertices_T, MaskOf(ctx), y_TC, y_TC);
}

void GraphConv::FinishGradient(const LayerContext& ctx, const Tensor& y_TC,
                               const Tensor& dy_TC) const {
  if (dropout_ > 0 && ctx.training && relu_) {
    ctx.backend->optimizer().Scale(dy_TC, 1.0f / (1.0f - dropout_));
  } else if (dropout_ > 0 && ctx.training) {
    ctx.backend->graphs().DropRows(BlockOf(ctx).vertices_T, MaskOf(ctx), dy_TC, dy_TC);
  }
  if (relu_) ctx.backend->ReluGradient(dy_TC, y_TC, dy_TC);
}

}  // namespace pipelab
