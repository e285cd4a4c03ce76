#include "models/layers/concat_spec.h"

#include <numeric>

#include "models/graph/cost_math.h"

namespace pipelab {

LayerSpec ConcatSpec(const ConcatSizes& s) {
  LayerSpec layer;
  layer.name = s.name;
  layer.kind = kConcat;
  layer.inputs = s.inputs;
  for (int64_t width : s.widths) layer.input_shapes.push_back({s.tokens, width});
  const int64_t width = std::accumulate(s.widths.begin(), s.widths.end(), int64_t{0});
  layer.output_shape = {s.tokens, width};
  layer.input_use = InputUse::kForward;
  layer.slice_costs = [t = s.tokens, width](int64_t samples, TokenSlice slice) {
    LayerCosts costs;
    costs.output = FloatBytes(samples * slice.CountOf(t) * width);
    costs.forward_peak = costs.output;
    costs.backward_input_peak = costs.backward_peak =
        costs.output;  // beside the gradient, its parts
    return costs;
  };
  layer.operations = [t = s.tokens, width](int64_t samples, TokenSlice slice) {
    const int64_t size = samples * slice.CountOf(t) * width;
    LayerOperations ops;
    AddElementwise(2 * size, 2 * size, &ops);
    return ops;
  };
  layer.costs = [of = layer.slice_costs](int64_t samples) { return of(samples, TokenSlice()); };
  return layer;
}

}  // namespace pipelab
