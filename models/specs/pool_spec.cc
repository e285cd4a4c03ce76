#include "models/specs/pool_spec.h"

#include "models/graph/cost_math.h"

namespace pipelab {

PoolSizes GlobalAverage(const std::string& name, int input, int64_t height, int64_t width,
                        int64_t channels) {
  PoolSizes s;
  s.name = name;
  s.input = input;
  s.height = s.kernel = height;
  s.width = s.kernel_width = width;
  s.channels = channels;
  s.kind = PoolKind::kAverage;
  return s;
}

PoolSizes FirstRow(const std::string& name, int input, int64_t rows, int64_t channels) {
  PoolSizes s = GlobalAverage(name, input, rows, 1, channels);
  s.kind = PoolKind::kFirst;
  return s;
}

LayerSpec PoolSpec(const PoolSizes& s) {
  const int64_t pixels = s.out_height() * s.out_width();
  LayerSpec layer;
  layer.name = s.name;
  layer.kind = kPool;
  layer.inputs = {s.input};
  layer.input_shapes = {{s.height * s.width, s.channels}};
  layer.output_shape = {pixels, s.channels};
  if (s.flat) layer.output_shape = {1, pixels * s.channels};
  layer.input_use = s.kind == PoolKind::kMax ? InputUse::kInputGradient : InputUse::kForward;
  layer.attributes = {{"height", s.height},     {"width", s.width},
                      {"channels", s.channels}, {"kind", static_cast<double>(s.kind)},
                      {"kernel", s.kernel},     {"kernel_width", s.kernel_width},
                      {"stride", s.stride},     {"pad", s.pad},
                      {"flat", s.flat}};
  layer.operations = [x = s.height * s.width * s.channels, y = pixels * s.channels,
                      max = s.kind == PoolKind::kMax,
                      first = s.kind == PoolKind::kFirst](int64_t samples, TokenSlice) {
    LayerOperations ops;
    if (first) {  // a row; zeros around it
      AddElementwise(2 * samples * y, samples * (x + 2 * y), &ops);
      return ops;
    }
    AddMemory(OperationKind::kPool, samples * (x + y), samples * (max ? 2 * x + y : x + y), &ops);
    return ops;
  };
  SetCosts(&layer, [x = s.height * s.width * s.channels, y = pixels * s.channels](NumberWidth width,
                                                                                  LayerSpec* l) {
    l->costs = [=](int64_t samples) {
      LayerCosts costs;
      costs.output = costs.forward_peak = width(samples * y);
      costs.backward_input_peak = costs.backward_peak = width(samples * x);
      return costs;
    };
  });
  return layer;
}

PoolSizes PoolSizesOf(const LayerSpec& layer) {
  const auto number = [&layer](const char* name) { return WholeAttribute(layer, name); };
  PoolSizes s;
  s.name = layer.name;
  s.input = layer.inputs[0];
  s.height = number("height");
  s.width = number("width");
  s.channels = number("channels");
  s.kind = static_cast<PoolKind>(number("kind"));
  s.kernel = number("kernel");
  s.kernel_width = number("kernel_width");
  s.stride = number("stride");
  s.pad = number("pad");
  s.flat = number("flat") != 0;
  return s;
}

}  // namespace pipelab
