#include "models/specs/graph_conv_spec.h"

#include <algorithm>
#include <cmath>

#include "glog/logging.h"
#include "models/graph/cost_math.h"

namespace pipelab {
namespace {

const char* KindName(GraphConvKind kind) {
  switch (kind) {
    case GraphConvKind::kSage:
      return kSageConv;
    case GraphConvKind::kGin:
      return kGinConv;
    case GraphConvKind::kGat:
      return kGatConv;
  }
  return "";
}

// Products x_MK w_KN of the forward; their gradients have the same ones.
struct GraphProduct {
  int64_t m, n, k;
  bool of_input;  // its input's gradient is for the layer's input alone
};
std::vector<GraphProduct> GraphProducts(const GraphConvSizes& s, BlockCounts c) {
  switch (s.kind) {
    case GraphConvKind::kSage:
      return {{c.targets, s.out, s.in, true}, {c.targets, s.out, s.in, true}};
    case GraphConvKind::kGin:
      return {{c.targets, s.out, s.in, true}, {c.targets, s.out, s.out, false}};
    case GraphConvKind::kGat:
      return {{c.sources, s.out, s.in, true}};
  }
  return {};
}

std::vector<ParameterSpec> GraphConvParameters(const GraphConvSizes& s) {
  const auto normal = [&](const char* name, std::vector<int64_t> shape, int64_t fan) {
    return ParameterSpec{s.name + name, std::move(shape), InitKind::kNormal,
                         std::sqrt(2.0 / static_cast<double>(fan)), ""};
  };
  const auto zeros = [&](const char* name) {
    return ParameterSpec{s.name + name, {s.out}, InitKind::kZeros, 0, ""};
  };
  switch (s.kind) {
    case GraphConvKind::kSage:
      return {normal("/w_self", {s.in, s.out}, 2 * s.in),
              normal("/w_neighbours", {s.in, s.out}, 2 * s.in)};
    case GraphConvKind::kGin:
      return {normal("/w1", {s.in, s.out}, s.in), zeros("/b1"),
              normal("/w2", {s.out, s.out}, s.out), zeros("/b2")};
    case GraphConvKind::kGat:
      return {normal("/w", {s.in, s.out}, s.in), normal("/source", {s.out}, s.out / s.heads),
              normal("/target", {s.out}, s.out / s.heads)};
  }
  return {};
}

LayerOperations OperationsOf(const GraphConvSizes& s, BlockCounts c) {
  LayerOperations ops;
  const bool gat = s.kind == GraphConvKind::kGat;
  // Rows are read once an edge, with the edge's own number, and written once a target; gradients
  // the other way.
  const int64_t width = gat ? s.out : s.in;
  const int64_t there = c.edges * (width + 1) + c.targets * width;
  const int64_t back = c.edges * (width + 2) + c.sources * width;
  ops.forward.push_back(ElementwiseOperation(there));
  for (const GraphProduct& p : GraphProducts(s, c)) {
    ops.forward.push_back(MatmulOperation(p.m, p.n, p.k));
    if (s.input_gradient || !p.of_input) {
      ops.backward_input.push_back(InputGradientOperation(p.m, p.n, p.k));
    }
    ops.backward_weight.push_back(WeightGradientOperation(p.m, p.n, p.k));
  }
  if (gat) {
    // Scores of sources and targets, the softmax, and the gradients of both.
    const int64_t scores = (c.sources + c.targets) * s.out, edges = c.edges * s.heads;
    ops.forward.push_back(ElementwiseOperation(scores));
    ops.forward.push_back(MemoryOperation(OperationKind::kGelu, 3 * edges));
    ops.backward_input.push_back(ElementwiseOperation(back + 2 * scores));
    ops.backward_input.push_back(MemoryOperation(OperationKind::kGelu, 5 * edges));
    ops.backward_weight.push_back(ElementwiseOperation(scores));
  } else if (s.input_gradient) {
    ops.backward_input.push_back(ElementwiseOperation(back));
  }
  const int64_t outputs = c.targets * s.out;
  if (s.relu) AddMemory(OperationKind::kActivation, 2 * outputs, 3 * outputs, &ops);
  if (s.dropout > 0) AddElementwise(2 * outputs, 2 * outputs, &ops);
  return ops;
}

// The order of allocations is in the layers' files.
LayerCosts GraphConvCosts(const GraphConvSizes& s, BlockCounts c, NumberWidth width) {
  LayerCosts costs;
  for (const GraphProduct& p : GraphProducts(s, c)) {
    costs.forward += MatmulFlops(p.m, p.n, p.k);
    if (s.input_gradient || !p.of_input) costs.backward_input += MatmulFlops(p.m, p.n, p.k);
    costs.backward_weight += MatmulFlops(p.m, p.n, p.k);
  }
  const Bytes t_in = width(c.targets * s.in), t_out = width(c.targets * s.out);
  const Bytes s_in = width(c.sources * s.in), s_out = width(c.sources * s.out);
  const Bytes edges = FloatBytes(c.edges * s.heads);
  const Bytes scores = FloatBytes((c.sources + c.targets) * s.heads);
  const Bytes dx = s.input_gradient ? s_in : Bytes(0);
  costs.output = t_out;
  // With a ReLU the output is kept too: the next layer's input is the same memory.
  switch (s.kind) {
    case GraphConvKind::kSage:
      costs.kept = t_in;
      costs.forward_peak = t_in + t_out * 2;
      costs.kept_for_weight = t_in + t_out;
      // The means' gradient, then that of the sources beside it, or of the own rows.
      costs.backward_input_peak = s.input_gradient ? t_in + dx : Bytes(0);
      break;
    case GraphConvKind::kGin:
      costs.kept = t_in + t_out;
      costs.forward_peak = t_in + t_out * 2;
      costs.kept_for_weight = t_in + t_out * 3;
      costs.backward_input_peak = t_out + (s.input_gradient ? t_in + dx : Bytes(0));
      break;
    case GraphConvKind::kGat:
      costs.kept = s_out + edges + scores;
      costs.forward_peak = s_out + edges + scores + t_out;
      costs.kept_for_weight = s_out * 2 + scores;
      costs.backward_input_peak = edges + scores + s_out + dx;
      break;
  }
  costs.backward_peak = costs.backward_input_peak;
  return costs;
}

}  // namespace

LayerSpec GraphConvSpec(const GraphConvSizes& s) {
  CHECK(s.heads >= 1 && s.out % s.heads == 0) << s.name << ": " << s.heads << " heads of " << s.out;
  LayerSpec layer;
  layer.name = s.name;
  layer.kind = KindName(s.kind);
  layer.inputs = {s.input};
  layer.input_shapes = {{s.counts.sources, s.in}};
  layer.output_shape = {s.counts.targets, s.out};
  layer.parameters = GraphConvParameters(s);
  layer.attributes = {{"block", s.block},
                      {"heads", static_cast<double>(s.heads)},
                      {"relu", s.relu ? 1 : 0},
                      {"dropout", s.dropout},
                      {"input_gradient", s.input_gradient ? 1 : 0}};
  const auto counts = [c = s.counts](int64_t samples) {
    return BlockCounts{samples * c.sources, samples * c.targets, samples * c.edges};
  };
  layer.operations = [s, counts](int64_t samples, TokenSlice) {
    return OperationsOf(s, counts(samples));
  };
  SetCosts(&layer, [s, counts](NumberWidth width, LayerSpec* l) {
    l->costs = [=](int64_t samples) { return GraphConvCosts(s, counts(samples), width); };
  });
  return layer;
}

}  // namespace pipelab
