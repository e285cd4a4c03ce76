#include "models/specs/relu_spec.h"

#include <functional>
#include <numeric>

#include "models/graph/cost_math.h"

namespace pipelab {

LayerSpec ReluSpec(const ReluSizes& s) {
  LayerSpec layer;
  layer.name = s.name;
  layer.kind = kRelu;
  layer.inputs = {s.input};
  layer.input_shapes = {s.shape};
  layer.output_shape = s.shape;
  layer.input_use = InputUse::kInputGradient;
  const int64_t size =
      std::accumulate(s.shape.begin(), s.shape.end(), int64_t{1}, std::multiplies<int64_t>());
  layer.operations = [size](int64_t samples, TokenSlice) {
    LayerOperations ops;
    AddMemory(OperationKind::kActivation, 2 * samples * size, 3 * samples * size, &ops);
    return ops;
  };
  SetCosts(&layer, [size](NumberWidth width, LayerSpec* l) {
    l->costs = [=](int64_t samples) {
      LayerCosts costs;
      costs.output = costs.forward_peak = width(samples * size);
      return costs;  // the gradient takes dy's place
    };
  });
  return layer;
}

}  // namespace pipelab
