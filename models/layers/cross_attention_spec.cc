#include "models/layers/cross_attention_spec.h"

#include <algorithm>

#include "models/graph/attention_workspace.h"
#include "models/graph/cost_math.h"
#include "models/layers/own_operations.h"

namespace pipelab {
namespace {

// The order of allocations is in cross_attention.cc.
LayerCosts CrossCosts(const CrossAttentionSizes& s, int64_t width, int64_t samples) {
  const int64_t m = samples * s.tokens, n = samples * s.memory_tokens;
  const int64_t mc = m * s.hidden, nc = n * s.hidden, mw = m * width, nw = n * width;
  const int64_t statistics = 2 * m, lse = m * s.heads;
  const Flops linear = MatmulFlops(m, width, s.hidden) + MatmulFlops(n, 2 * width, s.hidden) +
                       MatmulFlops(m, s.hidden, width);
  const Flops scores = MatmulFlops(samples, s.tokens * s.memory_tokens, width);
  LayerCosts costs;
  costs.forward = linear + 2.0 * scores;
  costs.backward_input = linear + 5.0 * scores;
  costs.backward_weight = linear;
  costs.output = FloatBytes(mc);
  costs.kept = FloatBytes(statistics + lse + 2 * mw + 2 * nw);
  // Gradients of q, k and v; the attention's output; the branch's gradient and that of the norm's
  // output.
  costs.kept_for_weight = FloatBytes(statistics + 2 * mw + 2 * nw + 2 * mc);
  // All that is kept, and the kernel's scratch or the branch's output; or q beside the norm's
  // output.
  const int64_t scratch = AttentionWorkspaceFloats(s.tokens, s.memory_tokens);
  costs.forward_peak = FloatBytes(statistics + lse + 2 * mw + 2 * nw + std::max(scratch, mc));
  // The attention's gradients in and out; or the gradients of the norm, x and the memory. With
  // dropout the branch's gradient is not dy itself.
  costs.backward_input_peak = FloatBytes(
      (s.dropout > 0 ? mc : 0) + std::max(2 * mw + 2 * nw + 2 * scratch, 2 * mc + nc - lse));
  costs.backward_peak = costs.backward_input_peak;
  // The weight part allocates only after it has freed more.
  costs.backward_weight_peak = Bytes(0);
  return costs;
}

// Norm, q, the memory's k and v, attention, product, residual.
LayerOperations CrossOperations(const CrossAttentionSizes& s, int64_t width, int64_t samples) {
  const int64_t m = samples * s.tokens, n = samples * s.memory_tokens;
  const Flops scores = MatmulFlops(samples, s.tokens * s.memory_tokens, width);
  LayerOperations ops;
  AddMemory(OperationKind::kLayerNorm, 2 * m * s.hidden, 4 * m * s.hidden, &ops);
  AddMatmul(m, width, s.hidden, &ops);
  AddMatmul(n, 2 * width, s.hidden, &ops);
  ops.forward.push_back(AttentionOperation(2.0 * scores, 2 * (m + n) * width, width / s.heads));
  ops.backward_input.push_back(
      AttentionOperation(5.0 * scores, 4 * (m + n) * width, width / s.heads));
  AddMatmul(m, s.hidden, width, &ops);
  AddElementwise(3 * m * s.hidden, 0, &ops);
  AddOwnNormAndResidual(m * s.hidden, &ops);
  return ops;
}

}  // namespace

LayerSpec CrossAttentionSpec(const CrossAttentionSizes& s) {
  const int64_t head_size = s.head_size == 0 ? s.hidden / s.heads : s.head_size;
  const int64_t width = s.heads * head_size;
  LayerSpec layer;
  layer.name = s.name;
  layer.kind = kCrossAttention;
  layer.inputs = {s.input, s.memory};
  layer.input_shapes = {{s.tokens, s.hidden}, {s.memory_tokens, s.hidden}};
  layer.output_shape = {s.tokens, s.hidden};
  layer.parameters = {
      {s.name + "/gamma", {s.hidden}, InitKind::kOnes, 0, ""},
      {s.name + "/beta", {s.hidden}, InitKind::kZeros, 0, ""},
      {s.name + "/wq", {s.hidden, width}, InitKind::kNormal, s.stddev, ""},
      {s.name + "/bq", {width}, InitKind::kZeros, 0, ""},
      {s.name + "/wkv", {s.hidden, 2 * width}, InitKind::kNormal, s.stddev, ""},
      {s.name + "/bkv", {2 * width}, InitKind::kZeros, 0, ""},
      {s.name + "/wo", {width, s.hidden}, InitKind::kNormal, s.projection_stddev, ""},
      {s.name + "/bo", {s.hidden}, InitKind::kZeros, 0, ""},
  };
  layer.attributes = {{"heads", static_cast<double>(s.heads)},
                      {"head_size", static_cast<double>(head_size)},
                      {"dropout", s.dropout}};
  if (!s.key_lengths.empty()) {
    layer.data = {{s.key_lengths, FieldType::kId, {1}, s.memory_tokens + 1}};
  }
  layer.operations = [s, width](int64_t samples, TokenSlice) {
    return CrossOperations(s, width, samples);
  };
  layer.costs = [s, width](int64_t samples) { return CrossCosts(s, width, samples); };
  return layer;
}

}  // namespace pipelab
