#include "models/layers/norm_spec.h"

#include "models/graph/cost_math.h"
#include "models/layers/own_operations.h"

namespace pipelab {

LayerSpec NormSpec(const NormSizes& s) {
  LayerSpec layer;
  layer.name = s.name;
  layer.kind = kNorm;
  layer.inputs = {s.input};
  layer.input_shapes = {{s.tokens, s.hidden}};
  layer.output_shape = {s.tokens, s.hidden};
  layer.parameters = {{s.name + "/gamma", {s.hidden}, InitKind::kOnes, 0, ""},
                      {s.name + "/beta", {s.hidden}, InitKind::kZeros, 0, ""}};
  layer.slice_costs = [s](int64_t samples, TokenSlice slice) {
    const int64_t m = samples * slice.CountOf(s.tokens), statistics = 2 * m;
    LayerCosts costs;
    costs.output = FloatBytes(m * s.hidden);
    costs.kept = FloatBytes(statistics);
    costs.kept_for_weight = costs.kept + costs.output;  // and dy
    costs.forward_peak = costs.kept + costs.output;
    costs.backward_input_peak = costs.backward_peak = costs.output;  // dx
    return costs;
  };
  layer.operations = [s](int64_t samples, TokenSlice slice) {
    const int64_t size = samples * slice.CountOf(s.tokens) * s.hidden;
    LayerOperations ops;
    AddMemory(OperationKind::kLayerNorm, 2 * size, 3 * size, &ops);
    AddOwnNormWeights(size, /*again=*/false, &ops);
    return ops;
  };
  layer.costs = [of = layer.slice_costs](int64_t samples) { return of(samples, TokenSlice()); };
  return layer;
}

}  // namespace pipelab
