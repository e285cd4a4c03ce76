#include "models/specs/gpt_attention_spec.h"

#include <algorithm>
#include <utility>

#include "glog/logging.h"
#include "models/graph/attention_workspace.h"
#include "models/graph/cost_math.h"
#include "models/specs/context_attention_spec.h"
#include "models/specs/own_operations.h"
#include "models/specs/slice_attention_spec.h"

namespace pipelab {
namespace {

// S samples of T tokens of C, or a slice of them; H heads, W wide together, of one device, and
// their keys K wide.
struct SelfSizes {
  int64_t samples, tokens, c, heads, w, k;
  bool causal, dropout;
  int64_t window, key_tile;  // 0: none
  int64_t statistics;        // what the norm keeps of a row
  bool rotary, residual;
  int64_t normed_size;  // of a head of q and k that has a norm; 0: none has
  bool sinks;
  TensorParallel split;
  NumberWidth width;

  int64_t qkv() const { return w + 2 * k; }
  SplitRows Rows(TokenSlice slice) const {
    return SplitRows(samples * slice.CountOf(tokens), split);
  }
  ContextAttention Context() const {
    return {samples, tokens,   heads,           w,     2 * k, w, causal,
            window,  key_tile, /*apart=*/false, split, width};
  }
  SliceAttention OfSlice(TokenSlice slice) const {
    return {samples, slice, heads, w, 2 * k, window, key_tile, width};
  }
};

Flops ScoreFlops(const SelfSizes& s, TokenSlice slice) {  // all heads together
  return slice.whole() ? s.Context().PairFlops(s.w)
                       : MatmulFlops(s.samples, s.OfSlice(slice).Pairs(), s.w);
}

// What norms of q and k keep: both as they were, and a number a row and head.
Bytes NormedBytes(const SelfSizes& s, int64_t m) {
  if (s.normed_size == 0) return Bytes(0);
  return s.width(m * (s.w + s.k)) + FloatBytes(m * (s.w + s.k) / s.normed_size);
}

void AddFlops(const SelfSizes& s, TokenSlice slice, LayerCosts* costs) {
  const int64_t m = s.Rows(slice).all;
  const Flops linear = MatmulFlops(m, s.qkv(), s.c) + MatmulFlops(m, s.c, s.w);
  const Flops scores = ScoreFlops(s, slice);
  costs->forward = linear + 2.0 * scores;
  costs->backward_input = linear + 5.0 * scores;
  costs->backward_weight = linear;
}

// The order of allocations is in gpt_attention.cc; where rows are split by tokens, all of them are
// there from a gather to the product that takes them, or until their sums are scattered.
LayerCosts AttentionCosts(const SelfSizes& s) {
  const SplitRows rows = s.Rows(TokenSlice());
  const int64_t m = rows.all;
  const Bytes mc = s.width(m * s.c), own = s.width(rows.own * s.c);
  const Bytes qkv_mix = s.width(m * (s.qkv() + s.w));
  const Bytes statistics = FloatBytes(s.statistics * rows.own), lse = FloatBytes(m * s.heads), none;
  const ContextMemory core = s.Context().Memory();
  // The latter: their gammas' gradients, of the micro-batch.
  const Bytes normed = NormedBytes(s, m), dgammas = FloatBytes(2 * s.normed_size);
  const Bytes turned = s.normed_size > 0 ? dgammas + s.width(2 * m * s.w) : none;
  LayerCosts costs;
  AddFlops(s, TokenSlice(), &costs);
  costs.output = own;
  costs.kept = statistics + lse + qkv_mix + normed + core.kept;
  // The gradient of q, k, v; the attention's output; the branch's gradient and that of the norm's
  // output.
  const Bytes dx = s.statistics > 0 ? own : none;  // without a norm its gradient is dx
  costs.kept_for_weight = statistics + qkv_mix + mc + dx + dgammas;
  // q, k, v and the attention's output are there; then come the kernel's scratch or the branch's
  // output, and its sums.
  costs.forward_peak =
      statistics +
      std::max({lse + qkv_mix + normed +
                    std::max(core.forward, core.kept + mc + (rows.scattered() ? own : none)),
                rows.scattered() ? mc + own : none, s.width(m * s.qkv()) + normed + core.gathers});
  // The attention's gradient in and out; the gradient of q behind its norm and in front; or the
  // norm's gradient and dx. With dropout the branch's gradient is not dy itself.
  const Bytes kernel = qkv_mix + core.backward, gone = lse + core.kept;
  if (rows.scattered()) {
    // Beside all rows of the branch's gradient; the sums of the norm's gradient, and dx.
    costs.backward_input_peak = mc + std::max({s.dropout ? own : none, kernel, turned - gone,
                                               mc + own - gone - normed + dgammas});
  } else {
    costs.backward_input_peak =
        (s.dropout ? mc : none) +
        std::max({kernel, turned - gone, mc + dx - gone - normed + dgammas});
  }
  costs.backward_peak = costs.backward_input_peak;
  // The weight part allocates only after it has freed more.
  costs.backward_weight_peak = Bytes(0);
  return costs;
}

// A slice. q, k, v of the whole samples come with the first slice's forward and go with its
// backward; their gradient comes with the last slice's backward and goes with the first one's. All
// of these are of all rows, where rows are split by tokens too.
LayerCosts SliceCosts(const SelfSizes& s, TokenSlice slice) {
  const SplitRows rows = s.Rows(slice);
  const int64_t m = rows.all;
  const Bytes mc = s.width(m * s.c), mw = s.width(m * s.w), qkv = s.width(m * s.qkv()), none;
  const Bytes own = s.width(rows.own * s.c), sums = rows.scattered() ? own : none;
  const Bytes statistics = FloatBytes(s.statistics * rows.own), lse = FloatBytes(m * s.heads);
  const Bytes sequence = s.width(s.samples * s.tokens * s.qkv());
  const Bytes starts = slice.first == 0 ? sequence : none;
  const Bytes ends = slice.end() == s.tokens ? sequence : none;
  const SliceAttentionMemory core = s.OfSlice(slice).Memory();
  LayerCosts costs;
  AddFlops(s, slice, &costs);
  costs.output = own;
  costs.kept = statistics + lse + mw + starts;
  costs.kept_for_weight = statistics + qkv + mw + mc + own;
  costs.kept_when_dropped = starts;
  // The slice's q, k, v beside the norm's output, which was gathered beside the own rows; beside
  // the samples'; then as for whole samples.
  const auto forward_peak = [&](Bytes room) {
    return statistics +
           std::max(mc + std::max(qkv, sums),
                    room + std::max(qkv, lse + mw + std::max(core.forward, mc + sums)));
  };
  costs.forward_peak = forward_peak(starts);
  costs.recompute_peak = forward_peak(none);
  // The branch's gradient, where it is gathered; the kernel, and what other devices' come to; the
  // slice's part of the gradient beside the samples'; the norm's gradient and dx, or its sums.
  const Bytes branch = s.dropout || rows.scattered() ? mc : none;
  const Bytes level = branch + ends, part = level + qkv - lse;
  costs.backward_input_peak =
      std::max({branch + (s.dropout ? sums : none), level + mw + core.backward,
                level - lse + core.backward_end, part, part - starts * 2 + mc + own});
  costs.backward_peak = costs.backward_input_peak;
  costs.backward_weight_peak = Bytes(0);
  costs.carried = ends - starts;
  return costs;
}

// Norm, q, k and v, attention, product, residual; the gradients of norm and residual are one sum.
LayerOperations AttentionOperations(const SelfSizes& s, TokenSlice slice) {
  const SplitRows rows = s.Rows(slice);
  const int64_t count = slice.CountOf(s.tokens), m = rows.all, own = rows.own * s.c;
  const ContextAttention context = s.Context();
  // Keys and values are those of the earlier slices too, in a causal mask.
  const int64_t most = s.window == 0 ? s.tokens : count + s.window - 1;
  const int64_t keys = s.samples * (context.parts() ? context.KeysRead()
                                    : slice.whole() ? std::min(s.tokens, most)
                                                    : s.OfSlice(slice).KeysRead());
  const Flops scores = ScoreFlops(s, slice);
  LayerOperations ops;
  const bool norm = s.statistics > 0;
  if (norm) AddMemory(OperationKind::kLayerNorm, 2 * own, 4 * own, &ops);
  AddMatmul(m, s.qkv(), s.c, &ops);
  const int64_t moved = m * s.w + keys * s.k;  // q and k; the output and v
  const int64_t parts = context.head_parts();
  const AttentionSize size = {m / s.samples * parts, s.samples * s.heads / parts, s.w / s.heads};
  ops.forward.push_back(AttentionOperation(2.0 * scores, 2 * moved, size));
  ops.backward_input.push_back(AttentionGradientOperation(5.0 * scores, 4 * moved, size));
  if (s.normed_size > 0) {  // q and k; our norms take and give copies
    const int64_t heads = m * (s.w + s.k);
    AddMemory(OperationKind::kLayerNorm, 2 * heads, 4 * heads, &ops);
    ops.forward.push_back(OwnOperation(OperationKind::kElementwise, 4 * heads));
    ops.backward_input.push_back(OwnOperation(OperationKind::kElementwise, 4 * heads));
    ops.backward_input.push_back(OwnOperation(OperationKind::kLayerNorm, 2 * heads));
  }
  if (s.rotary) {  // q and k, in place
    ops.forward.push_back(ElementwiseOperation(2 * m * (s.w + s.k)));
    ops.backward_input.push_back(ElementwiseOperation(2 * m * (s.w + s.k)));
  }
  if (context.parts()) context.AddOperations(&ops);
  if (slice.exchanges()) s.OfSlice(slice).AddOperations(&ops);
  if (s.sinks) ops.backward_weight.push_back(ElementwiseOperation(m * s.heads));
  AddMatmul(m, s.c, s.w, &ops);
  if (s.residual) AddElementwise(3 * own, 0, &ops);
  AddOwnNormAndResidual(own, &ops, s.residual, norm);
  return ops;
}

}  // namespace

int64_t CausalAttentionPairs(int64_t first, int64_t count, int64_t window) {
  // Whole blocks of B rows end B, 2B, ... after the first; the last one may have fewer rows.
  constexpr int64_t kRows = kAttentionQueryRows;
  int64_t pairs = 0;
  while (window > 0 && count > 0) {
    // The block's first row sees keys from the sequence's first one on; or it does not, and so do
    // those of the blocks behind it.
    const int64_t rows = std::min(kRows, count);
    if (first + 1 >= window) {
      return pairs + count / kRows * kRows * (kRows + window - 1) +
             count % kRows * (count % kRows + window - 1);
    }
    pairs += rows * (first + rows);
    first += rows;
    count -= rows;
  }
  const int64_t whole = count / kRows, rest = count % kRows;
  return pairs + kRows * kRows * whole * (whole + 1) / 2 + rest * count + first * count;
}

LayerSpec GptAttentionSpec(const GptAttentionSizes& s) {
  const int64_t head_size = s.head_size == 0 ? s.hidden / s.heads : s.head_size;
  const int64_t kv_heads = s.kv_heads == 0 ? s.heads : s.kv_heads, group = s.heads / kv_heads;
  const int64_t width = s.heads * head_size, qkv = width + 2 * kv_heads * head_size;
  CHECK_EQ(s.heads % kv_heads, 0) << s.name << ": " << kv_heads << " heads of k and v";
  LayerSpec layer;
  layer.name = s.name;
  layer.kind = kGptAttention;
  layer.inputs = {s.input};
  layer.input_shapes = {{s.tokens, s.hidden}};
  layer.output_shape = {s.tokens, s.hidden};
  layer.parameters = NormParameters(s.norm, s.name, s.hidden);
  const auto add = [&](ParameterSpec p) { layer.parameters.push_back(std::move(p)); };
  add({s.name + "/wqkv", {s.hidden, qkv}, InitKind::kNormal, s.stddev, "", 1, 3, group});
  if (s.biases != Biases::kNone) {
    add({s.name + "/bqkv", {qkv}, InitKind::kZeros, 0, "", 0, 3, group});
  }
  add({s.name + "/wo", {width, s.hidden}, InitKind::kNormal, s.projection_stddev, "", 0});
  if (s.biases == Biases::kAll) add({s.name + "/bo", {s.hidden}, InitKind::kZeros, 0, ""});
  if (s.query_key_norms) {
    add({s.name + "/qgamma", {head_size}, InitKind::kOnes, 0, ""});
    add({s.name + "/kgamma", {head_size}, InitKind::kOnes, 0, ""});
  }
  if (s.sinks) {
    add({s.name + "/sinks", {s.heads}, InitKind::kNormal, s.stddev, "", 0});
    layer.priced_alone = "sinks";
  }
  layer.attributes = {{"heads", static_cast<double>(s.heads)},
                      {"kv_heads", static_cast<double>(kv_heads)},
                      {"head_size", static_cast<double>(head_size)},
                      {"causal", s.causal ? 1 : 0},
                      {"window", static_cast<double>(s.window)},
                      {"key_tile", static_cast<double>(s.key_tile)},
                      {"dropout", s.dropout},
                      {"rotary_base", s.rotary_base}};
  if (!s.residual) layer.attributes[kNoResidual] = 1;
  CHECK(s.rotary_base == 0 || head_size % 2 == 0) << s.name << ": rotary heads of " << head_size;
  CHECK(s.window >= 0 && (s.window == 0 || s.causal)) << s.name << ": a window of " << s.window;
  if (!s.key_lengths.empty()) {
    CHECK(!s.causal) << s.name << ": key lengths in causal attention";
    layer.data = {{s.key_lengths, FieldType::kId, {1}, s.tokens + 1}};
  }
  SelfSizes one;
  one.samples = 1;
  one.tokens = s.tokens;
  one.c = s.hidden;
  one.heads = s.heads;
  one.w = width;
  one.k = kv_heads * head_size;
  one.causal = s.causal;
  one.window = s.window;
  one.key_tile = s.key_tile;
  one.dropout = s.dropout > 0;
  one.statistics = NormStatistics(s.norm);
  one.rotary = s.rotary_base != 0;
  one.residual = s.residual;
  one.normed_size = s.query_key_norms ? head_size : 0;
  one.sinks = s.sinks;
  const auto part = [one](int64_t samples, TensorParallel split,
                          NumberWidth bytes = NumberWidth()) {
    SelfSizes sizes = one;
    sizes.width = bytes;
    sizes.samples = samples;
    sizes.heads /= split.degree;
    sizes.w /= split.degree;
    sizes.k /= split.degree;
    sizes.split = split;
    return sizes;
  };
  layer.split.operations = [part](int64_t samples, TokenSlice slice, TensorParallel split) {
    return AttentionOperations(part(samples, split), slice);
  };
  layer.split.dimensions = {{"heads", s.heads, false, "heads"},
                            {"key and value heads", kv_heads, false, "kv_heads"},
                            {"tokens", s.tokens, true}};
  layer.split.context = s.causal ? ContextUse::kCausalKeys : ContextUse::kKeys;
  const bool whole_samples = !s.causal || s.query_key_norms || s.norm == NormKind::kNone;
  SetCosts(&layer, [part, whole_samples](NumberWidth bytes, LayerSpec* l) {
    l->split.costs = [part, bytes](int64_t samples, TokenSlice slice, TensorParallel split) {
      const SelfSizes sizes = part(samples, split, bytes);
      return slice.whole() ? AttentionCosts(sizes) : SliceCosts(sizes, slice);
    };
    l->split.collectives = [part, bytes](int64_t samples, TokenSlice slice, TensorParallel split) {
      const SelfSizes sizes = part(samples, split, bytes);
      TensorCollectives all =
          BranchCollectives(split, sizes.width(sizes.Rows(slice).all * sizes.c));
      if (split.degree > 1 && !split.sequence && sizes.normed_size > 0) {  // the gammas' gradients
        all.backward_input.insert(all.backward_input.end() - 1,
                                  {Collective::kAllReduce, FloatBytes(2 * sizes.normed_size)});
      }
      return all;
    };
    l->split.context_collectives = [part, bytes](int64_t samples, TokenSlice slice,
                                                 TensorParallel split) {
      const SelfSizes sizes = part(samples, split, bytes);
      return slice.exchanges() ? sizes.OfSlice(slice).Messages() : sizes.Context().Collectives();
    };
    SetWholeCosts(l);
    if (whole_samples) l->slice_costs = nullptr;
  });
  return layer;
}

}  // namespace pipelab
