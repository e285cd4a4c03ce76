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
  layer.tensor_dimensions = {{"tokens", s.tokens, true}};
  layer.tensor_share = [s](int64_t samples, TokenSlice slice, TensorParallel split) {
    const int64_t m = SplitRows(samples * slice.CountOf(s.tokens), split).own;
    TensorShare share;
    LayerCosts& costs = share.costs;
    costs.output = FloatBytes(m * s.hidden);
    costs.kept = FloatBytes(2 * m);                     // mean and reciprocal deviation
    costs.kept_for_weight = costs.kept + costs.output;  // and dy
    costs.forward_peak = costs.kept + costs.output;
    costs.backward_input_peak = costs.backward_peak = costs.output;  // dx
    AddMemory(OperationKind::kLayerNorm, 2 * m * s.hidden, 3 * m * s.hidden, &share.operations);
    AddOwnNormWeights(m * s.hidden, /*again=*/false, &share.operations);
    return share;
  };
  SetWholeCosts(&layer);
  return layer;
}

}  // namespace pipelab
