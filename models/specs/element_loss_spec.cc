#include "models/specs/element_loss_spec.h"

#include "models/graph/cost_math.h"

namespace pipelab {

LayerSpec ElementLossSpec(const ElementLossSizes& s) {
  LayerSpec layer;
  layer.name = s.name;
  layer.kind = kElementLoss;
  layer.inputs = {s.input};
  const int64_t size = s.rows * s.width;
  layer.input_shapes = {{s.rows, s.width}};
  layer.input_use = InputUse::kInputGradient;
  layer.attributes = {{"loss", static_cast<double>(s.kind)}};
  layer.data = {{kTargets, FieldType::kFloat, {size}}};
  layer.operations = [size](int64_t samples, TokenSlice) {
    LayerOperations ops;
    AddMemory(OperationKind::kLoss, 2 * samples * size, 3 * samples * size, &ops);
    return ops;
  };
  SetCosts(&layer, [size](NumberWidth width, LayerSpec* l) {
    l->costs = [=](int64_t samples) {
      LayerCosts costs;
      costs.backward_input_peak = costs.backward_peak = width(samples * size);  // dx
      return costs;
    };
  });
  return layer;
}

}  // namespace pipelab
