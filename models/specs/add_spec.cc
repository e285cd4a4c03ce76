#include "models/specs/add_spec.h"

#include <functional>
#include <numeric>

#include "models/graph/cost_math.h"

namespace pipelab {

LayerSpec AddSpec(const AddSizes& s) {
  LayerSpec layer;
  layer.name = s.name;
  layer.kind = kAdd;
  layer.inputs = s.inputs;
  layer.input_shapes.assign(s.inputs.size(), s.shape);
  layer.output_shape = s.shape;
  layer.input_use = InputUse::kForward;
  layer.split.context = ContextUse::kRows;
  const int64_t tokens = s.shape[0];
  const int64_t width_of_token =
      std::accumulate(s.shape.begin() + 1, s.shape.end(), int64_t{1}, std::multiplies<int64_t>());
  layer.operations = [tokens, width_of_token, n = static_cast<int64_t>(s.inputs.size())](
                         int64_t samples, TokenSlice slice) {
    const int64_t size = samples * slice.CountOf(tokens) * width_of_token;
    LayerOperations ops;
    AddElementwise((n + 1) * size, (n - 1) * 2 * size, &ops);
    return ops;
  };
  SetCosts(&layer, [tokens, width_of_token, n = static_cast<int64_t>(s.inputs.size())](
                       NumberWidth width, LayerSpec* l) {
    l->slice_costs = [=](int64_t samples, TokenSlice slice) {
      LayerCosts costs;
      costs.output = width(samples * slice.CountOf(tokens) * width_of_token);
      costs.forward_peak = costs.output;
      // Copies of the gradient for all inputs but one, which takes the output's.
      costs.backward_input_peak = costs.backward_peak = costs.output * (n - 1);
      return costs;
    };
    l->costs = [of = l->slice_costs](int64_t samples) { return of(samples, TokenSlice()); };
  });
  return layer;
}

}  // namespace pipelab
