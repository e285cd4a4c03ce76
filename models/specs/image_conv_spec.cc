#include "models/specs/image_conv_spec.h"

#include <algorithm>
#include <cmath>

#include "glog/logging.h"
#include "models/graph/convolution_workspace.h"
#include "models/graph/cost_math.h"
#include "models/specs/batch_norm_spec.h"

namespace pipelab {
namespace {

int64_t WorkspaceFloats(const ImageConvSizes& s) {
  ConvolutionWorkspaceSizes sizes;
  sizes.in_channels = s.in;
  sizes.out_channels = s.out;
  sizes.kernel_height = s.kernel_height;
  sizes.kernel_width = s.kernel_width;
  sizes.strided = s.stride_height > 1 || s.stride_width > 1;
  sizes.out_pixels = s.out_height() * s.out_width();
  return ConvolutionWorkspaceFloats(sizes);
}

// The order of allocations is in image_conv.cc.
LayerCosts ConvCosts(const ImageConvSizes& s, int64_t samples, NumberWidth width) {
  const int64_t rows = samples * s.out_height() * s.out_width();
  const Bytes output = width(rows * s.out);
  const Bytes workspace = FloatBytes(WorkspaceFloats(s));
  const Bytes x = width(samples * s.height * s.width * s.in);
  // relu(x), or the data's image, which comes in float32, in another type.
  const bool copies = s.relu || (s.input < 0 && width.bytes != NumberWidth().bytes);
  const Bytes copy = copies ? x : Bytes(0);
  const Bytes dx = s.input < 0 ? Bytes(0) : x;
  const Bytes norm = FloatBytes(s.norm ? 2 * s.out : 0);  // statistics; parts of the gradients
  const Bytes before_norm = s.norm ? output : Bytes(0);   // the convolution's output
  LayerCosts costs;
  costs.forward = costs.backward_weight =
      MatmulFlops(rows, s.out, s.kernel_height * s.kernel_width * s.in);
  if (s.input >= 0) costs.backward_input = costs.forward;
  costs.output = output;
  costs.kept = before_norm + norm;
  costs.kept_for_weight = output + norm;  // the gradient of the convolution's output
  costs.forward_peak = std::max(copy + output + workspace, costs.kept + output);
  if (!s.norm) costs.forward_peak = copy + output + workspace;
  // The norm's gradient takes dy's place, and its input and statistics go before dx comes.
  const Bytes at_dx = s.input < 0 ? Bytes(0) : dx + workspace - before_norm;
  costs.backward_input_peak = std::max({norm, at_dx, Bytes(0)});
  // The parts go before relu(x) comes again.
  costs.backward_weight_peak = std::max(copy + workspace - norm, Bytes(0));
  costs.backward_peak =
      std::max(costs.backward_input_peak, dx - before_norm + costs.backward_weight_peak);
  return costs;
}

// What our kernels do beside: the library's layout of the weights is a copy (and back, added to the
// gradient), relu(x) comes again, pixels are read from the data.
void AddOwn(const ImageConvSizes& s, int64_t samples, LayerOperations* ops) {
  const int64_t x = samples * s.height * s.width * s.in;
  const int64_t weights = s.kernel_height * s.kernel_width * s.in * s.out;
  const auto copies = [](int64_t numbers) {
    return OwnOperation(OperationKind::kElementwise, numbers);
  };
  ops->forward.push_back(copies(2 * weights));
  ops->backward_weight.push_back(copies(3 * weights));
  if (s.relu) ops->backward_weight.push_back(OwnOperation(OperationKind::kActivation, 2 * x));
  if (s.input >= 0) {
    ops->backward_input.push_back(copies(2 * weights));
  } else {
    ops->forward.push_back(copies(2 * x));
    ops->backward_weight.push_back(copies(2 * x));
  }
}

// ReLU of the input, convolution, batch normalisation, as far as they are there.
LayerOperations ConvOperations(const ImageConvSizes& s, int64_t samples) {
  const int64_t x = samples * s.height * s.width * s.in;
  const int64_t rows = samples * s.out_height() * s.out_width(), y = rows * s.out;
  const int64_t products = s.kernel_height * s.kernel_width * s.in;
  const int64_t numbers = x + y + products * s.out;
  const auto convolution = [&](int64_t m, int64_t n, int64_t k) {
    return ConvolutionOperation(m, n, k, numbers);
  };
  LayerOperations ops;
  ops.forward = {convolution(rows, s.out, products)};
  ops.backward_weight = {SumsRows(convolution(products, s.out, rows))};
  if (s.input >= 0) ops.backward_input = {convolution(rows, products, s.out)};
  if (s.relu) AddMemory(OperationKind::kActivation, 2 * x, s.input >= 0 ? 3 * x : 0, &ops);
  AddOwn(s, samples, &ops);
  if (!s.norm) return ops;
  const LayerOperations norm = BatchNormOperations(rows, s.out);
  ops.forward.push_back(norm.forward[0]);
  ops.backward_input.push_back(norm.backward_input[0]);
  ops.backward_weight.push_back(norm.backward_weight[0]);
  return ops;
}

}  // namespace

LayerSpec ImageConvSpec(const ImageConvSizes& s) {
  CHECK(s.kernel_height % 2 == 1 && s.kernel_width % 2 == 1) << s.name << ": an even kernel";
  const int64_t products = s.kernel_height * s.kernel_width * s.in;
  LayerSpec layer;
  layer.name = s.name;
  layer.kind = kImageConv;
  if (s.input < 0) {
    layer.data = {{kImage, FieldType::kFloat, {s.height, s.width, s.in}}};
  } else {
    layer.inputs = {s.input};
    layer.input_shapes = {{s.height * s.width, s.in}};
  }
  layer.output_shape = {s.out_height() * s.out_width(), s.out};
  layer.parameters = {{s.name + "/w",
                       {s.kernel_height, s.kernel_width, s.in, s.out},
                       InitKind::kNormal,
                       s.stddev > 0 ? s.stddev : std::sqrt(2.0 / static_cast<double>(products)),
                       ""}};
  if (s.bias) layer.parameters.push_back({s.name + "/b", {s.out}, InitKind::kZeros, 0, ""});
  if (s.norm) {
    layer.parameters.push_back({s.name + "/gamma", {s.out}, InitKind::kOnes, 0, ""});
    layer.parameters.push_back({s.name + "/beta", {s.out}, InitKind::kZeros, 0, ""});
    layer.statistics = RunningStatistics(s.name, s.out);
  }
  layer.attributes = {{"height", s.height},
                      {"width", s.width},
                      {"in", s.in},
                      {"out", s.out},
                      {"kernel_height", s.kernel_height},
                      {"kernel_width", s.kernel_width},
                      {"stride_height", s.stride_height},
                      {"stride_width", s.stride_width},
                      {"relu", s.relu},
                      {"norm", s.norm},
                      {"bias", s.bias}};
  layer.operations = [s](int64_t samples, TokenSlice) { return ConvOperations(s, samples); };
  SetCosts(&layer, [s](NumberWidth width, LayerSpec* l) {
    l->costs = [=](int64_t samples) { return ConvCosts(s, samples, width); };
  });
  return layer;
}

ImageConvSizes ImageConvSizesOf(const LayerSpec& layer) {
  const auto number = [&layer](const char* name) { return WholeAttribute(layer, name); };
  ImageConvSizes s;
  s.name = layer.name;
  s.input = layer.inputs.empty() ? -1 : layer.inputs[0];
  s.height = number("height");
  s.width = number("width");
  s.in = number("in");
  s.out = number("out");
  s.kernel_height = number("kernel_height");
  s.kernel_width = number("kernel_width");
  s.stride_height = number("stride_height");
  s.stride_width = number("stride_width");
  s.relu = number("relu") != 0;
  s.norm = number("norm") != 0;
  s.bias = number("bias") != 0;
  return s;
}

}  // namespace pipelab
