#include "models/specs/norm_spec.h"

#include "models/graph/cost_math.h"
#include "models/specs/own_operations.h"

namespace pipelab {

LayerSpec NormSpec(const NormSizes& s) {
  LayerSpec layer;
  layer.name = s.name;
  layer.kind = kNorm;
  layer.inputs = {s.input};
  layer.input_shapes = {{s.tokens, s.hidden}};
  layer.output_shape = {s.tokens, s.hidden};
  layer.parameters = NormParameters(s.kind, s.name, s.hidden);
  const auto rows = [t = s.tokens](int64_t samples, TokenSlice slice, TensorParallel split) {
    return SplitRows(samples * slice.CountOf(t), split).own;
  };
  layer.split.operations = [rows, c = s.hidden](int64_t samples, TokenSlice slice,
                                                TensorParallel split) {
    const int64_t size = rows(samples, slice, split) * c;
    LayerOperations ops;
    AddMemory(OperationKind::kLayerNorm, 2 * size, 3 * size, &ops);
    AddOwnNormWeights(size, /*again=*/false, &ops);
    return ops;
  };
  layer.split.collectives = [](int64_t, TokenSlice, TensorParallel) { return TensorCollectives(); };
  layer.split.dimensions = {{"tokens", s.tokens, true}};
  layer.split.context = ContextUse::kRows;
  SetCosts(&layer, [rows, c = s.hidden, statistics = NormStatistics(s.kind)](NumberWidth width,
                                                                             LayerSpec* l) {
    l->split.costs = [=](int64_t samples, TokenSlice slice, TensorParallel split) {
      const int64_t m = rows(samples, slice, split);
      LayerCosts costs;
      costs.output = width(m * c);
      costs.kept = FloatBytes(statistics * m);
      costs.kept_for_weight = costs.kept + costs.output;  // and dy
      costs.forward_peak = costs.kept + costs.output;
      costs.backward_input_peak = costs.backward_peak = costs.output;  // dx
      return costs;
    };
    SetWholeCosts(l);
  });
  return layer;
}

}  // namespace pipelab
