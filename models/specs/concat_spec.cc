#include "models/specs/concat_spec.h"

#include <numeric>

#include "models/graph/cost_math.h"

namespace pipelab {

LayerSpec ConcatSpec(const ConcatSizes& s) {
  LayerSpec layer;
  layer.name = s.name;
  layer.kind = kConcat;
  layer.inputs = s.inputs;
  for (int64_t width : s.widths) layer.input_shapes.push_back({s.tokens, width});
  const int64_t row = std::accumulate(s.widths.begin(), s.widths.end(), int64_t{0});
  layer.output_shape = {s.tokens, row};
  layer.input_use = InputUse::kForward;
  layer.operations = [t = s.tokens, row](int64_t samples, TokenSlice slice) {
    const int64_t size = samples * slice.CountOf(t) * row;
    LayerOperations ops;
    AddElementwise(2 * size, 2 * size, &ops);
    return ops;
  };
  SetCosts(&layer, [t = s.tokens, row](NumberWidth width, LayerSpec* l) {
    l->slice_costs = [=](int64_t samples, TokenSlice slice) {
      LayerCosts costs;
      costs.output = width(samples * slice.CountOf(t) * row);
      costs.forward_peak = costs.output;
      costs.backward_input_peak = costs.backward_peak =
          costs.output;  // beside the gradient, its parts
      return costs;
    };
    l->costs = [of = l->slice_costs](int64_t samples) { return of(samples, TokenSlice()); };
  });
  return layer;
}

}  // namespace pipelab
