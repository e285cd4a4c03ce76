#include "models/layers/gpt_attention_spec.h"

#include <algorithm>

#include "models/graph/attention_workspace.h"
#include "models/graph/cost_math.h"

namespace pipelab {
namespace {

// S samples of T tokens of C; H heads. The order of allocations is in gpt_attention.cc.
LayerCosts AttentionCosts(int64_t samples, int64_t tokens, int64_t c, int64_t heads, bool dropout) {
  const int64_t m = samples * tokens;
  const int64_t statistics = 2 * m, lse = m * heads;
  const Flops linear = MatmulFlops(m, 3 * c, c) + MatmulFlops(m, c, c);
  const Flops scores = MatmulFlops(samples, CausalAttentionPairs(tokens), c);  // all heads together
  LayerCosts costs;
  costs.forward = linear + 2.0 * scores;
  costs.backward_input = linear + 5.0 * scores;
  costs.backward_weight = linear;
  costs.output = FloatBytes(m * c);
  costs.kept = FloatBytes(statistics + lse + 4 * m * c);
  // The gradient of q, k, v; the attention's output; the branch's gradient and that of the norm's
  // output.
  costs.kept_for_weight = FloatBytes(statistics + 6 * m * c);
  // q, k, v and the attention's output are there; then come the kernel's scratch or the branch's
  // output.
  costs.forward_peak =
      FloatBytes(statistics + lse + 4 * m * c + std::max(AttentionWorkspaceFloats(tokens), m * c));
  // The attention's gradient in and out; with dropout the branch's gradient is not dy itself.
  costs.backward_input_peak =
      FloatBytes((dropout ? 5 : 4) * m * c + AttentionGradientWorkspaceFloats(tokens));
  costs.backward_peak = costs.backward_input_peak;
  // The weight part allocates only after it has freed more.
  costs.backward_weight_peak = Bytes(0);
  return costs;
}

}  // namespace

int64_t CausalAttentionPairs(int64_t tokens) {
  // Whole blocks of B rows end at B, 2B, ...; the last one may have fewer rows.
  const int64_t whole = tokens / kAttentionQueryRows, rest = tokens % kAttentionQueryRows;
  return kAttentionQueryRows * kAttentionQueryRows * whole * (whole + 1) / 2 + rest * tokens;
}

LayerSpec GptAttentionSpec(const GptAttentionSizes& s) {
  LayerSpec layer;
  layer.name = s.name;
  layer.kind = kGptAttention;
  layer.inputs = {s.input};
  layer.input_shapes = {{s.tokens, s.hidden}};
  layer.output_shape = {s.tokens, s.hidden};
  layer.parameters = {
      {s.name + "/gamma", {s.hidden}, InitKind::kOnes, 0, ""},
      {s.name + "/beta", {s.hidden}, InitKind::kZeros, 0, ""},
      {s.name + "/wqkv", {s.hidden, 3 * s.hidden}, InitKind::kNormal, s.stddev, ""},
      {s.name + "/bqkv", {3 * s.hidden}, InitKind::kZeros, 0, ""},
      {s.name + "/wo", {s.hidden, s.hidden}, InitKind::kNormal, s.projection_stddev, ""},
      {s.name + "/bo", {s.hidden}, InitKind::kZeros, 0, ""},
  };
  layer.attributes = {{"heads", static_cast<double>(s.heads)}, {"dropout", s.dropout}};
  layer.costs = [t = s.tokens, c = s.hidden, h = s.heads, dropout = s.dropout > 0](
                    int64_t samples) { return AttentionCosts(samples, t, c, h, dropout); };
  return layer;
}

}  // namespace pipelab
