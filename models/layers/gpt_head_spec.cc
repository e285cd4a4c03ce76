#include "models/layers/gpt_head_spec.h"

#include "glog/logging.h"
#include "models/graph/cost_math.h"
#include "models/layers/own_operations.h"

namespace pipelab {
namespace {

// M rows of C, V logits each. The order of allocations is in gpt_head.cc.
LayerCosts HeadCosts(int64_t m, int64_t c, int64_t v) {
  const int64_t statistics = 2 * m;  // mean and reciprocal deviation
  LayerCosts costs;
  costs.forward = MatmulFlops(m, v, c);
  costs.backward_input = costs.forward;
  costs.backward_weight = costs.forward;
  costs.output = Bytes(0);
  costs.kept = FloatBytes(statistics + m * v);
  // The logits' gradient; the gradient of the norm's output.
  costs.kept_for_weight = FloatBytes(statistics + m * v + m * c);
  costs.forward_peak =
      FloatBytes(statistics + m * v + m * c);         // the norm's output beside the logits
  costs.backward_input_peak = FloatBytes(2 * m * c);  // its gradient and dx
  costs.backward_peak = costs.backward_input_peak;
  // The weight part frees as much as it allocates, before it does.
  costs.backward_weight_peak = Bytes(0);
  return costs;
}

}  // namespace

LayerSpec GptHeadSpec(const GptHeadSizes& s) {
  LayerSpec layer;
  layer.name = s.name;
  layer.kind = kGptHead;
  layer.inputs = {s.input};
  layer.input_shapes = {{s.tokens, s.hidden}};
  layer.parameters = {
      {s.name + "/gamma", {s.hidden}, InitKind::kOnes, 0, ""},
      {s.name + "/beta", {s.hidden}, InitKind::kZeros, 0, ""},
  };
  if (s.output_bias) {
    CHECK(s.tie.empty()) << s.name << ": an output bias beside a tied table";
    layer.parameters.push_back(
        {s.name + "/w", {s.hidden, s.vocabulary}, InitKind::kNormal, s.stddev, ""});
    layer.parameters.push_back({s.name + "/b", {s.vocabulary}, InitKind::kZeros, 0, ""});
  } else {
    layer.parameters.push_back(
        {s.name + "/table", {s.vocabulary, s.hidden}, InitKind::kNormal, s.stddev, s.tie});
  }
  layer.attributes = {{"output_bias", s.output_bias ? 1 : 0}};
  layer.data = {{kTargets, FieldType::kId, {s.tokens}, s.vocabulary, s.padded_targets}};
  layer.slice_costs = [t = s.tokens, c = s.hidden, v = s.vocabulary](int64_t samples,
                                                                     TokenSlice slice) {
    return HeadCosts(samples * slice.CountOf(t), c, v);
  };
  layer.operations = [t = s.tokens, c = s.hidden, v = s.vocabulary](int64_t samples,
                                                                    TokenSlice slice) {
    const int64_t m = samples * slice.CountOf(t);
    LayerOperations ops;
    AddMemory(OperationKind::kLayerNorm, 2 * m * c, 3 * m * c, &ops);
    AddMatmul(m, v, c, &ops);
    AddMemory(OperationKind::kLoss, 2 * m * v, 2 * m * v, &ops);
    AddOwnNormWeights(m * c, /*again=*/true, &ops);
    return ops;
  };
  layer.costs = [of = layer.slice_costs](int64_t samples) { return of(samples, TokenSlice()); };
  return layer;
}

}  // namespace pipelab
