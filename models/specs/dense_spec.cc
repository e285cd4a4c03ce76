#include "models/specs/dense_spec.h"

#include "models/graph/cost_math.h"

namespace pipelab {
namespace {

// M rows. The order of allocations is in dense.cc.
LayerCosts DenseCosts(int64_t m, int64_t in, int64_t out, bool activation, NumberWidth width) {
  LayerCosts costs;
  costs.forward = costs.backward_input = costs.backward_weight = MatmulFlops(m, out, in);
  costs.output = width(m * out);
  costs.kept = activation ? width(m * out) : Bytes(0);
  costs.kept_for_weight = width(m * out);  // the gradient of the activation's input
  costs.forward_peak = costs.kept + costs.output;
  // That gradient takes dy's place, and the activation's input goes before dx comes.
  const Bytes above = width(m * in) - costs.kept;
  costs.backward_input_peak = costs.backward_peak = above < Bytes(0) ? Bytes(0) : above;
  return costs;
}

}  // namespace

LayerSpec DenseSpec(const DenseSizes& s) {
  LayerSpec layer;
  layer.name = s.name;
  layer.kind = kDense;
  layer.inputs = {s.input};
  layer.input_shapes = {{s.tokens, s.in}};
  layer.output_shape = {s.tokens, s.out};
  layer.parameters = {{s.name + "/w", {s.in, s.out}, InitKind::kNormal, s.stddev, ""},
                      {s.name + "/b", {s.out}, InitKind::kZeros, 0, ""}};
  layer.attributes = {{"activation", static_cast<double>(s.activation)}};
  if (s.exact_gelu) layer.attributes["exact_gelu"] = 1;
  if (s.scale != 1) layer.attributes["scale"] = s.scale;
  layer.split.context = ContextUse::kRows;
  layer.operations = [s](int64_t samples, TokenSlice slice) {
    const int64_t m = samples * slice.CountOf(s.tokens);
    LayerOperations ops;
    AddMatmul(m, s.out, s.in, &ops);
    if (s.activation != Activation::kNone)
      AddMemory(OperationKind::kActivation, 2 * m * s.out, 3 * m * s.out, &ops);
    if (s.scale != 1) AddElementwise(2 * m * s.out, 2 * m * s.out, &ops);
    return ops;
  };
  SetCosts(&layer, [s](NumberWidth width, LayerSpec* l) {
    l->slice_costs = [s, width](int64_t samples, TokenSlice slice) {
      return DenseCosts(samples * slice.CountOf(s.tokens), s.in, s.out,
                        s.activation != Activation::kNone, width);
    };
    l->costs = [of = l->slice_costs](int64_t samples) { return of(samples, TokenSlice()); };
  });
  return layer;
}

Activation ActivationOf(const LayerSpec& dense) {
  return static_cast<Activation>(static_cast<int>(Attribute(dense, "activation")));
}

}  // namespace pipelab
