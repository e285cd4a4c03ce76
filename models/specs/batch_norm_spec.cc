#include "models/specs/batch_norm_spec.h"

#include "models/graph/cost_math.h"

namespace pipelab {

std::vector<ParameterSpec> RunningStatistics(const std::string& name, int64_t channels) {
  return {{name + "/running_mean", {channels}, InitKind::kZeros, 0, ""},
          {name + "/running_variance", {channels}, InitKind::kOnes, 0, ""}};
}

LayerOperations BatchNormOperations(int64_t rows, int64_t channels) {
  const int64_t size = rows * channels;
  LayerOperations ops;
  AddMemory(OperationKind::kBatchNorm, 3 * size, 5 * size,
            &ops);  // each pass reads its inputs twice: sums, then values
  // Ours adds the parts to the gradients of gamma and beta in a pass of its own.
  ops.backward_weight = {OwnOperation(OperationKind::kBatchNorm, 4 * channels)};
  return ops;
}

LayerSpec BatchNormSpec(const BatchNormSizes& s) {
  LayerSpec layer;
  layer.name = s.name;
  layer.kind = kBatchNorm;
  layer.inputs = {s.input};
  layer.input_shapes = {{s.rows, s.channels}};
  layer.output_shape = {s.rows, s.channels};
  layer.input_use = InputUse::kInputGradient;
  layer.parameters = {{s.name + "/gamma", {s.channels}, InitKind::kOnes, 0, ""},
                      {s.name + "/beta", {s.channels}, InitKind::kZeros, 0, ""}};
  layer.statistics = RunningStatistics(s.name, s.channels);
  layer.operations = [rows = s.rows, c = s.channels](int64_t samples, TokenSlice) {
    return BatchNormOperations(samples * rows, c);
  };
  SetCosts(&layer, [rows = s.rows, c = s.channels](NumberWidth width, LayerSpec* l) {
    l->costs = [=](int64_t samples) {
      LayerCosts costs;
      costs.output = width(samples * rows * c);
      costs.kept = costs.kept_for_weight = FloatBytes(2 * c);  // statistics; parts of the gradients
      costs.forward_peak = costs.kept + costs.output;
      // The gradient takes dy's place; the parts come before the statistics go.
      costs.backward_input_peak = costs.backward_peak = costs.kept_for_weight;
      return costs;
    };
  });
  return layer;
}

}  // namespace pipelab
