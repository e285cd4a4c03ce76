#include "models/specs/subsample_spec.h"

#include "glog/logging.h"
#include "models/graph/cost_math.h"

namespace pipelab {

LayerSpec SubsampleSpec(const SubsampleSizes& s) {
  CHECK(s.height % 2 == 0 && s.width % 2 == 0) << s.name << ": " << s.height << " x " << s.width;
  const int64_t x = s.height * s.width * s.channels;
  LayerSpec layer;
  layer.name = s.name;
  layer.kind = kSubsample;
  layer.inputs = {s.input};
  layer.input_shapes = {{s.height * s.width, s.channels}};
  layer.output_shape = {s.height / 2 * (s.width / 2), s.channels};
  layer.input_use = InputUse::kForward;
  layer.attributes = {
      {"height", s.height}, {"width", s.width}, {"row", s.row}, {"column", s.column}};
  layer.operations = [x](int64_t samples, TokenSlice) {
    LayerOperations ops;
    AddElementwise(samples * x / 2, samples * x / 4 * 5, &ops);
    // Ours goes by lines: one more copy forward, and zeros of them backward.
    ops.forward.push_back(OwnOperation(OperationKind::kElementwise, samples * x));
    ops.backward_input.push_back(OwnOperation(OperationKind::kElementwise, samples * x / 4 * 7));
    return ops;
  };
  SetCosts(&layer, [x](NumberWidth width, LayerSpec* l) {
    l->costs = [=](int64_t samples) {
      LayerCosts costs;
      costs.output = width(samples * x / 4);
      costs.forward_peak = width(samples * x / 2) + costs.output;  // lines, then pixels
      costs.backward_input_peak = costs.backward_peak = width(samples * x / 2 * 3);
      return costs;
    };
  });
  return layer;
}

}  // namespace pipelab
