#include "models/layers/gpt_mlp_spec.h"

#include "models/graph/cost_math.h"
#include "models/layers/own_operations.h"

namespace pipelab {
namespace {

// M rows of C; F inner. The order of allocations is in gpt_mlp.cc.
LayerCosts MlpCosts(int64_t m, int64_t c, int64_t f, bool dropout) {
  const int64_t statistics = 2 * m;  // mean and reciprocal deviation
  LayerCosts costs;
  costs.forward = 2 * MatmulFlops(m, f, c);
  costs.backward_input = costs.forward;
  costs.backward_weight = costs.forward;
  costs.output = FloatBytes(m * c);
  costs.kept = FloatBytes(statistics + m * f);
  // h and its gradient; the branch's gradient and that of the norm's output.
  costs.kept_for_weight = FloatBytes(statistics + 2 * m * f + 2 * m * c);
  // At the second product: h, gelu(h), the branch's output.
  costs.forward_peak = FloatBytes(statistics + 2 * m * f + m * c);
  // At the gradient of the norm: dh, its gradient, dx; with dropout the branch's gradient is not dy
  // itself.
  costs.backward_input_peak = FloatBytes(m * f + (dropout ? 3 : 2) * m * c);
  costs.backward_peak = costs.backward_input_peak;
  // The weight part allocates only after it has freed more.
  costs.backward_weight_peak = Bytes(0);
  return costs;
}

// Norm, product, GELU, product, residual; the gradients of norm and residual are one sum.
LayerOperations MlpOperations(int64_t m, int64_t c, int64_t f) {
  LayerOperations ops;
  AddMemory(OperationKind::kLayerNorm, 2 * m * c, 4 * m * c, &ops);
  AddMatmul(m, f, c, &ops);
  AddMemory(OperationKind::kGelu, 2 * m * f, 3 * m * f, &ops);
  AddMatmul(m, c, f, &ops);
  AddElementwise(3 * m * c, 0, &ops);
  AddOwnNormAndResidual(m * c, &ops);
  ops.backward_weight.push_back(OwnOperation(OperationKind::kGelu, 2 * m * f));  // again
  return ops;
}

}  // namespace

LayerSpec GptMlpSpec(const GptMlpSizes& s) {
  LayerSpec layer;
  layer.name = s.name;
  layer.kind = kGptMlp;
  layer.inputs = {s.input};
  layer.input_shapes = {{s.tokens, s.hidden}};
  layer.output_shape = {s.tokens, s.hidden};
  layer.parameters = {
      {s.name + "/gamma", {s.hidden}, InitKind::kOnes, 0, ""},
      {s.name + "/beta", {s.hidden}, InitKind::kZeros, 0, ""},
      {s.name + "/w1", {s.hidden, s.inner}, InitKind::kNormal, s.stddev, ""},
      {s.name + "/b1", {s.inner}, InitKind::kZeros, 0, ""},
      {s.name + "/w2", {s.inner, s.hidden}, InitKind::kNormal, s.projection_stddev, ""},
      {s.name + "/b2", {s.hidden}, InitKind::kZeros, 0, ""},
  };
  layer.attributes = {{"inner", static_cast<double>(s.inner)}, {"dropout", s.dropout}};
  layer.slice_costs = [t = s.tokens, c = s.hidden, f = s.inner, dropout = s.dropout > 0](
                          int64_t samples, TokenSlice slice) {
    return MlpCosts(samples * slice.CountOf(t), c, f, dropout);
  };
  layer.operations = [t = s.tokens, c = s.hidden, f = s.inner](int64_t samples, TokenSlice slice) {
    return MlpOperations(samples * slice.CountOf(t), c, f);
  };
  layer.costs = [of = layer.slice_costs](int64_t samples) { return of(samples, TokenSlice()); };
  return layer;
}

}  // namespace pipelab
