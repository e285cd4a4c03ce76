#include "models/specs/cross_attention_spec.h"

#include <algorithm>

#include "models/graph/attention_workspace.h"
#include "models/graph/cost_math.h"
#include "models/specs/own_operations.h"

namespace pipelab {
namespace {

// The sizes of one device.
struct CrossSizes {
  int64_t samples, tokens, memory_tokens, c, heads, w;
  bool dropout;
  TensorParallel split;
  NumberWidth width;

  SplitRows Rows() const { return SplitRows(samples * tokens, split); }
  SplitRows MemoryRows() const { return SplitRows(samples * memory_tokens, split); }
  Flops ScoreFlops() const { return MatmulFlops(samples, tokens * memory_tokens, w); }
};

// The order of allocations is in cross_attention.cc; where rows are split by tokens, all of them
// are there from a gather to the product that takes them, or until their sums are scattered.
LayerCosts CrossCosts(const CrossSizes& s) {
  const SplitRows rows = s.Rows(), memory = s.MemoryRows();
  const int64_t m = rows.all, n = memory.all;
  const Bytes mc = s.width(m * s.c), nc = s.width(n * s.c), own = s.width(rows.own * s.c);
  const Bytes mw = s.width(m * s.w), nw = s.width(n * s.w), none;
  const Bytes statistics = FloatBytes(2 * rows.own), lse = FloatBytes(m * s.heads);
  const Flops linear =
      MatmulFlops(m, s.w, s.c) + MatmulFlops(n, 2 * s.w, s.c) + MatmulFlops(m, s.c, s.w);
  LayerCosts costs;
  costs.forward = linear + 2.0 * s.ScoreFlops();
  costs.backward_input = linear + 5.0 * s.ScoreFlops();
  costs.backward_weight = linear;
  costs.output = own;
  costs.kept = statistics + lse + (mw + nw) * 2;
  // Gradients of q, k and v; the attention's output; the branch's gradient and that of the norm's
  // output.
  costs.kept_for_weight = statistics + (mw + nw) * 2 + mc + own;
  // All that is kept, and the kernel's scratch or the branch's output; or q beside the norm's
  // output.
  const Bytes scratch = FloatBytes(AttentionWorkspaceFloats(s.tokens, s.memory_tokens));
  const Bytes all = lse + (mw + nw) * 2;
  if (!rows.scattered()) {
    costs.forward_peak = statistics + all + std::max(scratch, mc);
    // The attention's gradients in and out; or the gradients of the norm, x and the memory. With
    // dropout the branch's gradient is not dy itself.
    costs.backward_input_peak =
        (s.dropout ? mc : none) + std::max((mw + nw + scratch) * 2, mc * 2 + nc - lse);
    // The weight part allocates only after it has freed more.
    costs.backward_weight_peak = Bytes(0);
  } else {
    const Bytes own_memory = s.width(memory.own * s.c);
    // The norm's rows, gathered; q, k and v beside all of the memory; the branch's output and its
    // sums.
    costs.forward_peak = statistics + std::max({own + mc, mc + mw, mw + nc + nw * 2,
                                                all + std::max(scratch, mc + own)});
    // Beside all rows of the branch's gradient; then the sums of the norm's gradient; then these,
    // dx and the sums of the memory's.
    costs.backward_input_peak = mc + std::max({s.dropout ? own : none, (mw + nw + scratch) * 2,
                                               mc + own - lse, own * 2 + nc + own_memory - lse});
    // The memory, gathered once the attention's output and the branch's gradient are gone.
    costs.backward_weight_peak = std::max(none, nc - mw - mc);
  }
  // The weight part begins with what the input part leaves: dx in the place of dy, the memory's
  // gradient.
  costs.backward_peak = std::max(
      costs.backward_input_peak,
      costs.kept_for_weight - costs.kept + s.width(memory.own * s.c) + costs.backward_weight_peak);
  return costs;
}

// Norm, q, the memory's k and v, attention, product, residual.
LayerOperations CrossOperations(const CrossSizes& s) {
  const SplitRows rows = s.Rows();
  const int64_t m = rows.all, n = s.MemoryRows().all, own = rows.own * s.c;
  LayerOperations ops;
  AddMemory(OperationKind::kLayerNorm, 2 * own, 4 * own, &ops);
  AddMatmul(m, s.w, s.c, &ops);
  AddMatmul(n, 2 * s.w, s.c, &ops);
  const AttentionSize size = {m / s.samples, s.samples * s.heads, s.w / s.heads};
  ops.forward.push_back(AttentionOperation(2.0 * s.ScoreFlops(), 2 * (m + n) * s.w, size));
  ops.backward_input.push_back(
      AttentionGradientOperation(5.0 * s.ScoreFlops(), 4 * (m + n) * s.w, size));
  AddMatmul(m, s.c, s.w, &ops);
  AddElementwise(3 * own, 0, &ops);
  AddOwnNormAndResidual(own, &ops);
  return ops;
}

// The branch's, and what the first product of the memory adds.
TensorCollectives CrossCollectives(const CrossSizes& s) {
  const Bytes memory = s.width(s.MemoryRows().all * s.c);
  TensorCollectives collectives = BranchCollectives(s.split, s.width(s.Rows().all * s.c));
  AddGather(s.split, memory, &collectives.forward);
  AddSum(s.split, memory, &collectives.backward_input);
  AddGather(s.split, memory, &collectives.backward_weight);
  return collectives;
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
      {s.name + "/wq", {s.hidden, width}, InitKind::kNormal, s.stddev, "", 1},
      {s.name + "/bq", {width}, InitKind::kZeros, 0, "", 0},
      {s.name + "/wkv", {s.hidden, 2 * width}, InitKind::kNormal, s.stddev, "", 1, 2},
      {s.name + "/bkv", {2 * width}, InitKind::kZeros, 0, "", 0, 2},
      {s.name + "/wo", {width, s.hidden}, InitKind::kNormal, s.projection_stddev, "", 0},
      {s.name + "/bo", {s.hidden}, InitKind::kZeros, 0, ""},
  };
  layer.attributes = {{"heads", static_cast<double>(s.heads)},
                      {"head_size", static_cast<double>(head_size)},
                      {"dropout", s.dropout}};
  if (!s.key_lengths.empty()) {
    layer.data = {{s.key_lengths, FieldType::kId, {1}, s.memory_tokens + 1}};
  }
  const CrossSizes one{1,  s.tokens, s.memory_tokens, s.hidden, s.heads, width, s.dropout > 0,
                       {}, {}};
  const auto part = [one](int64_t samples, TensorParallel split,
                          NumberWidth bytes = NumberWidth()) {
    CrossSizes sizes = one;
    sizes.width = bytes;
    sizes.samples = samples;
    sizes.heads /= split.degree;
    sizes.w /= split.degree;
    sizes.split = split;
    return sizes;
  };
  layer.split.operations = [part](int64_t samples, TokenSlice, TensorParallel split) {
    return CrossOperations(part(samples, split));
  };
  layer.split.dimensions = {{"heads", s.heads, false, "heads"},
                            {"tokens", s.tokens, true},
                            {"memory tokens", s.memory_tokens, true}};
  SetCosts(&layer, [part](NumberWidth bytes, LayerSpec* l) {
    l->split.costs = [part, bytes](int64_t samples, TokenSlice, TensorParallel split) {
      return CrossCosts(part(samples, split, bytes));
    };
    l->split.collectives = [part, bytes](int64_t samples, TokenSlice, TensorParallel split) {
      return CrossCollectives(part(samples, split, bytes));
    };
    SetWholeCosts(l);
    l->slice_costs = nullptr;
  });
  return layer;
}

}  // namespace pipelab
