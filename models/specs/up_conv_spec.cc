#include "models/specs/up_conv_spec.h"

#include <cmath>

#include "models/graph/convolution_workspace.h"
#include "models/graph/cost_math.h"

namespace pipelab {
namespace {

// The order of allocations is in up_conv.cc.
LayerCosts UpConvCosts(const UpConvSizes& s, int64_t samples, NumberWidth width) {
  ConvolutionWorkspaceSizes sizes;  // of the convolution that goes the other way
  sizes.in_channels = s.out;
  sizes.out_channels = s.in;
  sizes.kernel_height = sizes.kernel_width = 2;
  sizes.strided = true;
  sizes.out_pixels = s.height * s.width;
  const Bytes workspace = FloatBytes(ConvolutionWorkspaceFloats(sizes));
  const int64_t rows = samples * s.height * s.width;
  LayerCosts costs;
  costs.forward = costs.backward_input = costs.backward_weight = MatmulFlops(rows, 4 * s.out, s.in);
  costs.output = width(rows * 4 * s.out);
  costs.kept_for_weight = costs.output;  // its gradient
  costs.forward_peak = costs.output + workspace;
  costs.backward_input_peak = costs.backward_peak = width(rows * s.in) + workspace;
  costs.backward_weight_peak = workspace;
  return costs;
}

}  // namespace

LayerSpec UpConvSpec(const UpConvSizes& s) {
  LayerSpec layer;
  layer.name = s.name;
  layer.kind = kUpConv;
  layer.inputs = {s.input};
  layer.input_shapes = {{s.height * s.width, s.in}};
  layer.output_shape = {4 * s.height * s.width, s.out};
  layer.parameters = {{s.name + "/w",
                       {2, 2, s.out, s.in},
                       InitKind::kNormal,
                       std::sqrt(2.0 / static_cast<double>(s.in)),
                       ""}};
  layer.attributes = {{"height", s.height}, {"width", s.width}};
  layer.operations = [s](int64_t samples, TokenSlice) {
    const int64_t rows = samples * s.height * s.width;
    LayerOperations ops;
    const int64_t out = 4 * s.out, numbers = rows * s.in + out * s.in + rows * out;
    ops.forward = {ConvolutionOperation(rows, out, s.in, numbers)};
    ops.backward_input = {ConvolutionOperation(rows, s.in, out, numbers)};
    ops.backward_weight = {SumsRows(ConvolutionOperation(s.in, out, rows, numbers))};
    return ops;
  };
  SetCosts(&layer, [s](NumberWidth width, LayerSpec* l) {
    l->costs = [=](int64_t samples) { return UpConvCosts(s, samples, width); };
  });
  return layer;
}

}  // namespace pipelab
