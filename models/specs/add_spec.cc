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
  const auto size = [=](int64_t samples, TokenSlice slice, TensorParallel split) {
    return SplitRows(samples * slice.CountOf(tokens), split).own * width_of_token;
  };
  const auto n = static_cast<int64_t>(s.inputs.size());
  layer.split.operations = [size, n](int64_t samples, TokenSlice slice, TensorParallel split) {
    const int64_t numbers = size(samples, slice, split);
    LayerOperations ops;
    AddElementwise((n + 1) * numbers, (n - 1) * 2 * numbers, &ops);
    return ops;
  };
  layer.split.collectives = [](int64_t, TokenSlice, TensorParallel) { return TensorCollectives(); };
  layer.split.dimensions = {{"tokens", tokens, true}};
  SetCosts(&layer, [size, n](NumberWidth width, LayerSpec* l) {
    l->split.costs = [=](int64_t samples, TokenSlice slice, TensorParallel split) {
      LayerCosts costs;
      costs.output = width(size(samples, slice, split));
      costs.forward_peak = costs.output;
      // Copies of the gradient for all inputs but one, which takes the output's.
      costs.backward_input_peak = costs.backward_peak = costs.output * (n - 1);
      return costs;
    };
    SetWholeCosts(l);
  });
  return layer;
}

}  // namespace pipelab
