#include "models/specs/unfused_attention_spec.h"

#include <utility>

#include "models/graph/attention_workspace.h"
#include "models/graph/cost_math.h"
#include "models/specs/gpt_attention_spec.h"

namespace pipelab {
namespace {

// T tokens, H heads of D, of one device; kv_heads of k and v.
struct UnfusedSizes {
  int64_t tokens, heads, kv_heads, head_size, hidden, window, key_tile;

  int64_t width() const { return heads * head_size; }
  int64_t qkv() const { return width() + 2 * kv_heads * head_size; }
  int64_t pairs(int64_t samples) const { return samples * heads * tokens * tokens; }
  Flops product(int64_t samples) const { return MatmulFlops(pairs(samples), 1, head_size); }
};

LayerCosts UnfusedCosts(const UnfusedSizes& s, const LayerCosts& fused, int64_t samples) {
  const int64_t m = samples * s.tokens, w = s.width();
  const Flops linear = MatmulFlops(m, s.qkv() + w, s.hidden);
  const Bytes pairs = FloatBytes(s.pairs(samples));
  const Bytes scratch =
      FloatBytes(AttentionWorkspaceFloats(s.tokens, s.tokens, s.window, s.key_tile));
  LayerCosts costs = fused;
  costs.forward = linear + 2.0 * s.product(samples);
  costs.backward_input = linear + 4.0 * s.product(samples);
  // The softmax is kept; for a moment the scores are there as well, and its gradient.
  costs.kept += pairs;
  costs.forward_peak += 2 * pairs - scratch;
  costs.backward_input_peak += pairs - 2 * scratch;
  costs.backward_peak = costs.backward_input_peak;
  return costs;
}

// A product over all heads: of T x D and D x T, or of T x T and T x D.
Operation UnfusedScoreProduct(const UnfusedSizes& s, int64_t samples) {
  Operation o = MatmulOperation(s.tokens, s.tokens, s.head_size);
  o.flops = s.product(samples);
  o.numbers = s.pairs(samples) + 2 * samples * s.tokens * s.width();
  return o;
}

LayerOperations UnfusedOperations(const UnfusedSizes& s, int64_t samples, TensorParallel split) {
  const SplitRows rows(samples * s.tokens, split);
  const int64_t m = rows.all, own = rows.own * s.hidden, w = s.width(), pairs = s.pairs(samples);
  LayerOperations ops;
  AddMemory(OperationKind::kLayerNorm, 2 * own, 4 * own, &ops);
  AddMatmul(m, s.qkv(), s.hidden, &ops);
  ops.forward.insert(ops.forward.end(), 2, UnfusedScoreProduct(s, samples));
  ops.backward_input.insert(ops.backward_input.end(), 4, UnfusedScoreProduct(s, samples));
  AddMemory(OperationKind::kActivation, 2 * pairs, 3 * pairs, &ops);  // softmax
  AddMatmul(m, s.hidden, w, &ops);
  AddElementwise(3 * own, 0, &ops);
  return ops;
}

void MakeUnfused(LayerSpec* layer) {
  const UnfusedSizes whole = {layer->output_shape[0],
                              WholeAttribute(*layer, "heads"),
                              WholeAttribute(*layer, "kv_heads"),
                              WholeAttribute(*layer, "head_size"),
                              layer->output_shape[1],
                              WholeAttribute(*layer, "window"),
                              WholeAttribute(*layer, "key_tile")};
  layer->kind = kUnfusedAttention;
  const auto part = [whole](TensorParallel split) {
    UnfusedSizes s = whole;
    s.heads /= split.degree;
    s.kv_heads /= split.degree;
    return s;
  };
  layer->split.costs = [part, fused = layer->split.costs](int64_t samples, TokenSlice slice,
                                                          TensorParallel split) {
    return UnfusedCosts(part(split), fused(samples, slice, split), samples);
  };
  layer->split.operations = [part](int64_t samples, TokenSlice, TensorParallel split) {
    return UnfusedOperations(part(split), samples, split);
  };
  SetWholeCosts(layer);
  layer->split.context = ContextUse::kNone;
  layer->set_costs = nullptr;  // it does not run
  layer->slice_costs = nullptr;
}

}  // namespace

ModelGraph WithUnfusedAttention(ModelGraph graph) {
  for (LayerSpec& layer : graph.layers) {
    if (layer.kind == kGptAttention) MakeUnfused(&layer);
  }
  return graph;
}

}  // namespace pipelab
