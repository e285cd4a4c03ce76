#include "models/layers/gpt_attention_spec.h"

#include <algorithm>

#include "models/graph/attention_workspace.h"
#include "models/graph/cost_math.h"

namespace pipelab {
namespace {

// S samples of T tokens of C, or a slice of them; H heads.
struct Sizes {
  int64_t samples, tokens, c, heads;
  bool dropout;
};

Flops ScoreFlops(const Sizes& s, TokenSlice slice) {  // all heads together
  return MatmulFlops(s.samples, CausalAttentionPairs(slice.first, slice.CountOf(s.tokens)), s.c);
}

// The order of allocations is in gpt_attention.cc.
LayerCosts AttentionCosts(const Sizes& s) {
  const auto [samples, tokens, c, heads, dropout] = s;
  const int64_t m = samples * tokens;
  const int64_t statistics = 2 * m, lse = m * heads;
  const Flops linear = MatmulFlops(m, 3 * c, c) + MatmulFlops(m, c, c);
  const Flops scores = ScoreFlops(s, TokenSlice());
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
  costs.forward_peak = FloatBytes(statistics + lse + 4 * m * c +
                                  std::max(AttentionWorkspaceFloats(tokens, tokens), m * c));
  // The attention's gradient in and out; with dropout the branch's gradient is not dy itself.
  costs.backward_input_peak =
      FloatBytes((dropout ? 5 : 4) * m * c + AttentionGradientWorkspaceFloats(tokens, tokens));
  costs.backward_peak = costs.backward_input_peak;
  // The weight part allocates only after it has freed more.
  costs.backward_weight_peak = Bytes(0);
  return costs;
}

// A slice. q, k, v of the whole samples come with the first slice's forward and go with its
// backward; their gradient comes with the last slice's backward and goes with the first one's.
LayerCosts SliceCosts(const Sizes& s, TokenSlice slice) {
  const int64_t c = s.c, m = s.samples * slice.count;
  const int64_t statistics = 2 * m, lse = m * s.heads, sequence = 3 * s.samples * s.tokens * c;
  const int64_t starts = slice.first == 0 ? sequence : 0;
  const int64_t ends = slice.end() == s.tokens ? sequence : 0;
  const int64_t scratch = AttentionWorkspaceFloats(slice.count, slice.end());
  const Flops linear = MatmulFlops(m, 3 * c, c) + MatmulFlops(m, c, c);
  LayerCosts costs;
  costs.forward = linear + 2.0 * ScoreFlops(s, slice);
  costs.backward_input = linear + 5.0 * ScoreFlops(s, slice);
  costs.backward_weight = linear;
  costs.output = FloatBytes(m * c);
  costs.kept = FloatBytes(statistics + lse + m * c + starts);
  costs.kept_for_weight = FloatBytes(statistics + 6 * m * c);
  costs.kept_when_dropped = FloatBytes(starts);
  // The slice's q, k, v beside the norm's output; beside the samples'; then as for whole samples.
  const auto forward_peak = [&](int64_t room) {
    return FloatBytes(
        statistics +
        std::max(4 * m * c, room + std::max(3 * m * c, lse + m * c + std::max(scratch, m * c))));
  };
  costs.forward_peak = forward_peak(starts);
  costs.recompute_peak = forward_peak(0);
  // The kernel; the slice's part of the gradient beside the samples'; the norm's gradient and dx.
  const int64_t level = (s.dropout ? m * c : 0) + ends, part = level + 3 * m * c - lse;
  costs.backward_input_peak =
      FloatBytes(std::max({level + m * c + 2 * scratch, part, part - 2 * starts + 2 * m * c}));
  costs.backward_peak = costs.backward_input_peak;
  costs.backward_weight_peak = Bytes(0);
  costs.carried = FloatBytes(ends - starts);
  return costs;
}

}  // namespace

int64_t CausalAttentionPairs(int64_t first, int64_t count) {
  // Whole blocks of B rows end B, 2B, ... after the first; the last one may have fewer rows.
  constexpr int64_t kRows = kAttentionQueryRows;
  const int64_t whole = count / kRows, rest = count % kRows;
  return kRows * kRows * whole * (whole + 1) / 2 + rest * count + first * count;
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
  const Sizes one{1, s.tokens, s.hidden, s.heads, s.dropout > 0};
  const auto of = [one](int64_t samples) {
    Sizes sizes = one;
    sizes.samples = samples;
    return sizes;
  };
  layer.costs = [of](int64_t samples) { return AttentionCosts(of(samples)); };
  layer.slice_costs = [of](int64_t samples, TokenSlice slice) {
    return SliceCosts(of(samples), slice);
  };
  return layer;
}

}  // namespace pipelab
