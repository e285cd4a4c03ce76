#include "models/specs/element_loss_spec.h"

#include "models/graph/cost_math.h"

namespace pipelab {

LayerSpec ElementLossSpec(const ElementLossSizes& s) {
  LayerSpec layer;
  layer.name = s.name;
  layer.kind = kElementLoss;
  layer.inputs = {s.input};
  layer.input_shapes = {{1, s.width}};
  layer.input_use = InputUse::kInputGradient;
  layer.attributes = {{"loss", static_cast<double>(s.kind)}};
  layer.data = {{kTargets, FieldType::kFloat, {s.width}}};
  layer.operations = [width = s.width](int64_t samples, TokenSlice) {
    LayerOperations ops;
    AddMemory(OperationKind::kLoss, 2 * samples * width, 3 * samples * width, &ops);
    return ops;
  };
  SetCosts(&layer, [columns = s.width](NumberWidth width, LayerSpec* l) {
    l->costs = [=](int64_t samples) {
      LayerCosts costs;
      costs.backward_input_peak = costs.backward_peak = width(samples * columns);  // dx
      return costs;
    };
  });
  return layer;
}

}  // namespace pipelab
