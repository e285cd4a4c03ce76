#include "models/specs/classifier_spec.h"

#include "models/graph/cost_math.h"

namespace pipelab {

LayerSpec ClassifierSpec(const ClassifierSizes& s) {
  LayerSpec layer;
  layer.name = s.name;
  layer.kind = kClassifier;
  layer.inputs = {s.input};
  layer.input_shapes = {{s.rows, s.channels}};
  layer.parameters = {
      {s.name + "/w", {s.channels, s.classes}, InitKind::kNormal, s.stddev, ""},
      {s.name + "/b", {s.classes}, InitKind::kZeros, 0, ""},
  };
  layer.data = {{kTargets, FieldType::kId, {s.rows}, s.classes}};
  layer.operations = [s](int64_t samples, TokenSlice) {
    const int64_t m = samples * s.rows;
    LayerOperations ops;
    AddMatmul(m, s.classes, s.channels, &ops);
    AddMemory(OperationKind::kLoss, 2 * m * s.classes, 2 * m * s.classes, &ops);
    return ops;
  };
  SetCosts(&layer, [s](NumberWidth width, LayerSpec* l) {
    l->costs = [=](int64_t samples) {
      const int64_t m = samples * s.rows;
      LayerCosts costs;
      costs.forward = costs.backward_input = costs.backward_weight =
          MatmulFlops(m, s.classes, s.channels);
      costs.kept = costs.kept_for_weight = costs.forward_peak = width(m * s.classes);
      costs.backward_input_peak = costs.backward_peak = width(m * s.channels);
      return costs;
    };
  });
  return layer;
}

}  // namespace pipelab
