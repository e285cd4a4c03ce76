#include "models/specs/data_input_spec.h"

#include "models/graph/cost_math.h"

namespace pipelab {

LayerSpec DataInputSpec(const DataInputSizes& s) {
  LayerSpec layer;
  layer.name = s.name;
  layer.kind = kDataInput;
  layer.output_shape = s.shape;
  if (s.shape.size() == 1) layer.output_shape.insert(layer.output_shape.begin(), 1);
  layer.data = {{s.field, FieldType::kFloat, s.shape}};
  layer.operations = [size = layer.data[0].size()](int64_t samples, TokenSlice) {
    LayerOperations ops;
    AddElementwise(2 * samples * size, 0, &ops);
    return ops;
  };
  SetCosts(&layer, [size = layer.data[0].size()](NumberWidth width, LayerSpec* l) {
    l->costs = [=](int64_t samples) {
      LayerCosts costs;
      costs.output = width(samples * size);
      costs.forward_peak = costs.output;
      return costs;
    };
  });
  return layer;
}

}  // namespace pipelab
