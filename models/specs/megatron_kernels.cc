#include "models/specs/megatron_kernels.h"

#include <algorithm>
#include <functional>
#include <iterator>
#include <utility>

#include "absl/strings/str_cat.h"
#include "models/specs/further_token_spec.h"
#include "models/specs/gpt_attention_spec.h"
#include "models/specs/gpt_embedding_spec.h"
#include "models/specs/gpt_experts_spec.h"
#include "models/specs/gpt_head_spec.h"
#include "models/specs/gpt_latent_attention_spec.h"
#include "models/specs/gpt_mlp_spec.h"
#include "models/specs/megatron_experts.h"
#include "models/specs/megatron_operations.h"
#include "models/specs/megatron_vocabulary.h"
#include "models/specs/unfused_attention_spec.h"

namespace pipelab {
namespace {

Operation Softmax(int64_t numbers) { return MemoryOperation(OperationKind::kActivation, numbers); }
Operation Gelu(int64_t numbers) { return MemoryOperation(OperationKind::kGelu, numbers); }
// Input, residual, output and a mask of bytes.
Operation BiasDropoutResidual(int64_t numbers) { return Elementwise(3 * numbers + numbers / 2); }

// The gradients of a norm's input, and of the residual that goes around the branch.
void AddBranchStart(int64_t size, LayerOperations* ops) {
  ops->forward.push_back(Norm(2 * size));
  ops->backward_input.push_back(Norm(4 * size));
  ops->backward_input.push_back(Elementwise(3 * size));
  ops->backward_weight.push_back(Norm(2 * size));
}

// A branch without biases has no dropout either, and its end is the sum with the residual.
void AddBranchEnd(int64_t size, bool biases, LayerOperations* ops) {
  if (!biases) {
    ops->forward.push_back(Elementwise(3 * size));
    return;
  }
  ops->forward.push_back(BiasDropoutResidual(size));
  ops->backward_input.push_back(Dropout(size));
  ops->backward_weight.push_back(Elementwise(size));  // of the bias
}

// Half the pairs of a causal mask: n of n^2 are on its diagonal, which is counted as masked.
int64_t Half(int64_t pairs) { return pairs / 2; }

struct AttentionSizes {
  int64_t tokens, heads, kv_heads, head_size, hidden;
  bool rotary, qkv_bias, bias, sinks;

  int64_t Width(TensorParallel split) const { return heads / split.degree * head_size; }
  int64_t Qkv(TensorParallel split) const {
    return Width(split) + 2 * (kv_heads / split.degree) * head_size;
  }
};

// q k^T, and its like: [T, D] [D, T] or [T, T] [T, D] of each sample and head.
Operation ScoreProduct(const AttentionSizes& s, int64_t heads, int64_t m, int64_t n, int64_t k) {
  Operation o = MatmulOperation(m, n, k);
  o.flops = MatmulFlops(heads * m, n, k);
  o.numbers = heads * (s.tokens * s.tokens + 2 * s.tokens * s.head_size);
  return o;
}

// Behind the scores: the product, and what sums the gradients of all parameters.
void AddAttentionEnd(const AttentionSizes& s, int64_t m, int64_t own, TensorParallel split,
                     LayerOperations* ops) {
  const int64_t c = s.hidden, w = s.Width(split), qkv = s.Qkv(split);
  if (s.qkv_bias) ops->backward_weight.push_back(Elementwise(m * qkv));  // the bias of q, k, v
  AddMatmul(m, c, w, ops);
  AddBranchEnd(own, s.bias, ops);
  AccumulateWeights({qkv * c, w * c}, &ops->backward_weight);
  if (s.bias) {
    Accumulate({c, c, qkv, c}, &ops->backward_weight);
  } else {
    Accumulate({c}, &ops->backward_weight);
    if (s.qkv_bias) Accumulate({qkv}, &ops->backward_weight);
  }
  if (!s.sinks) return;
  ops->backward_weight.push_back(Elementwise(m * s.heads / split.degree));
  Accumulate({s.heads / split.degree}, &ops->backward_weight);
}

LayerOperations UnfusedKernels(const AttentionSizes& s, int64_t samples, TokenSlice,
                               TensorParallel split) {
  const SplitRows rows(samples * s.tokens, split);
  const int64_t m = rows.all, own = rows.own * s.hidden;
  const int64_t heads = s.heads / split.degree, w = s.Width(split), qkv = s.Qkv(split);
  const int64_t pairs = samples * heads * s.tokens * s.tokens;
  const Operation to_scores = ScoreProduct(s, samples * heads, s.tokens, s.tokens, s.head_size);
  const Operation from_scores = ScoreProduct(s, samples * heads, s.tokens, s.head_size, s.tokens);
  LayerOperations ops;
  AddBranchStart(own, &ops);
  AddMatmul(m, qkv, s.hidden, &ops);
  const OperationPass forward = {to_scores, Softmax(Half(pairs) + pairs), Dropout(pairs),
                                 from_scores, Elementwise(2 * m * w)};
  ops.forward.insert(ops.forward.end(), forward.begin(), forward.end());
  const OperationPass backward = {
      Elementwise(2 * m * w),           to_scores,   from_scores, Dropout(pairs),
      Softmax(2 * Half(pairs) + pairs), from_scores, from_scores, Elementwise(2 * m * qkv)};
  ops.backward_input.insert(ops.backward_input.end(), backward.begin(), backward.end());
  AddAttentionEnd(s, m, own, split, &ops);
  return ops;
}

// The fused kernels of the model's own operations, and what merges their results round a ring or
// puts in order what devices exchange by heads.
void AddCore(const LayerOperations& core, LayerOperations* ops) {
  for (const auto& [from, to] : {std::make_pair(&core.forward, &ops->forward),
                                 std::make_pair(&core.backward_input, &ops->backward_input)}) {
    std::copy_if(from->begin(), from->end(), std::back_inserter(*to), [](const Operation& o) {
      return o.kind == OperationKind::kAttention || o.kind == OperationKind::kGelu ||
             o.kind == OperationKind::kActivation;
    });
  }
}

// A slice's keys and values are put behind those of the slices before by a copy of all. Backward
// gives gradients of all of these, to which those of the later slices are added.
void AddPrefix(const AttentionSizes& s, int64_t samples, TokenSlice slice, TensorParallel split,
               LayerOperations* ops) {
  if (slice.whole()) return;
  const int64_t seen = samples * slice.end() * (s.Qkv(split) - s.Width(split));
  if (slice.first > 0) ops->forward.push_back(Elementwise(2 * seen));
  if (slice.end() < s.tokens) ops->backward_input.push_back(Elementwise(3 * seen));
}

LayerOperations FusedKernels(const AttentionSizes& s, const LayerOperations& core, int64_t samples,
                             TokenSlice slice, TensorParallel split) {
  const SplitRows rows(samples * slice.CountOf(s.tokens), split);
  const int64_t m = rows.all, own = rows.own * s.hidden;
  const int64_t w = s.Width(split), qkv = s.Qkv(split);
  LayerOperations ops;
  AddBranchStart(own, &ops);
  AddMatmul(m, qkv, s.hidden, &ops);
  if (s.rotary) {  // q and k, in place
    const int64_t turned = m * (qkv + w) / 2;
    ops.forward.push_back(Elementwise(2 * turned));
    ops.backward_input.push_back(Elementwise(2 * turned));
  }
  AddPrefix(s, samples, slice, split, &ops);
  AddCore(core, &ops);
  AddAttentionEnd(s, m, own, split, &ops);
  return ops;
}

struct LatentSizes {
  int64_t tokens, heads, hidden;
  LatentHeads latent;
};

// The narrow products and their norms are of the device's own rows.
LayerOperations LatentKernels(const LatentSizes& s, const LayerOperations& core, int64_t samples,
                              TensorParallel split) {
  const SplitRows rows(samples * s.tokens, split);
  const LatentHeads& l = s.latent;
  const int64_t m = rows.all, c = s.hidden, own = rows.own, heads = s.heads / split.degree;
  const int64_t q = heads * l.head_size(), up = heads * (l.nope_size + l.value_size);
  LayerOperations ops;
  AddBranchStart(own * c, &ops);
  const auto add_narrow = [&](int64_t rank, int64_t beside) {
    AddMatmul(own, rank + beside, c, &ops);
    ops.forward.push_back(Norm(2 * own * rank));
    ops.backward_input.push_back(Norm(3 * own * rank));
    ops.backward_weight.push_back(Norm(2 * own * rank));
    Accumulate({rank}, &ops.backward_weight);
    AccumulateWeights({c * (rank + beside)}, &ops.backward_weight);
  };
  if (l.query_rank > 0) add_narrow(l.query_rank, 0);
  add_narrow(l.rank, l.rope_size);
  const int64_t q_in = l.query_rank > 0 ? l.query_rank : c;
  AddMatmul(m, q, q_in, &ops);
  AddMatmul(m, up, l.rank, &ops);
  // The first one changes q in place, the second one reads what keys and values are made of and
  // writes these.
  for (const int64_t numbers :
       {2 * m * heads * l.rope_size, m * (2 * up + l.rope_size + heads * l.rope_size)}) {
    AddElementwise(numbers, numbers, &ops);
  }
  AddCore(core, &ops);
  AddMatmul(m, c, heads * l.value_size, &ops);
  AddBranchEnd(own * c, /*biases=*/false, &ops);
  Accumulate({c}, &ops.backward_weight);
  AccumulateWeights({q_in * q, l.rank * up, heads * l.value_size * c}, &ops.backward_weight);
  return ops;
}

struct MlpSizes {
  int64_t tokens, hidden, inner;
  bool gated, bias;
};

LayerOperations MlpKernels(const MlpSizes& s, int64_t samples, TokenSlice slice,
                           TensorParallel split) {
  const SplitRows rows(samples * slice.CountOf(s.tokens), split);
  const int64_t c = s.hidden, f = s.inner / split.degree, wide = s.gated ? 2 * f : f;
  const int64_t m = rows.all, own = rows.own * c;
  LayerOperations ops;
  AddBranchStart(own, &ops);
  AddMatmul(m, wide, c, &ops);
  ops.forward.push_back(Gelu(m * (wide + f)));
  ops.backward_input.push_back(Gelu(m * (2 * wide + f)));
  if (s.bias) ops.backward_weight.push_back(Elementwise(m * wide));
  AddMatmul(m, c, f, &ops);
  AddBranchEnd(own, s.bias, &ops);
  AccumulateWeights({c * wide, f * c}, &ops.backward_weight);
  if (s.bias) {
    Accumulate({c, c, wide, c}, &ops.backward_weight);
  } else {
    Accumulate({c}, &ops.backward_weight);
  }
  return ops;
}

LayerOperations ExpertsKernels(const MegatronExperts& s, int64_t samples, TokenSlice,
                               TensorParallel split) {
  const int64_t own = SplitRows(samples * s.tokens, split).own * s.hidden;
  LayerOperations ops;
  AddBranchStart(own, &ops);
  s.AddOperations(samples, split, &ops);
  AddBranchEnd(own, /*biases=*/false, &ops);
  Accumulate({s.hidden}, &ops.backward_weight);
  AccumulateWeights({s.hidden * s.experts}, &ops.backward_weight);  // experts' are, with products
  return ops;
}

// The layer's own, and sums of gradients. Norms have their weight gradients in a pass, too.
Kernels FurtherTokenKernels(const LayerSpec& layer) {
  return [parameters = layer.parameters, of = layer.split.operations](
             int64_t samples, TokenSlice slice, TensorParallel split) {
    LayerOperations ops = of(samples, slice, split);
    for (Operation& o : ops.backward_weight) o.own = false;
    for (const ParameterSpec& p : parameters) Accumulate({p.size_on(split)}, &ops.backward_weight);
    return ops;
  };
}

bool HasParameter(const LayerSpec& layer, absl::string_view end) {
  return std::any_of(layer.parameters.begin(), layer.parameters.end(), [&](const ParameterSpec& p) {
    return p.name == absl::StrCat(layer.name, "/", end);
  });
}

Kernels KernelsOf(const LayerSpec& layer, LossImplementation loss) {
  using std::placeholders::_1;
  using std::placeholders::_2;
  using std::placeholders::_3;
  if (layer.kind == kUnfusedAttention || layer.kind == kGptAttention) {
    const AttentionSizes sizes = {layer.output_shape[0],
                                  WholeAttribute(layer, "heads"),
                                  WholeAttribute(layer, "kv_heads"),
                                  WholeAttribute(layer, "head_size"),
                                  layer.output_shape[1],
                                  Attribute(layer, "rotary_base") > 0,
                                  HasParameter(layer, "bqkv"),
                                  HasParameter(layer, "bo"),
                                  HasParameter(layer, "sinks")};
    if (layer.kind == kUnfusedAttention) return std::bind(UnfusedKernels, sizes, _1, _2, _3);
    return [sizes, core = layer.split.operations](int64_t samples, TokenSlice slice,
                                                  TensorParallel split) {
      return FusedKernels(sizes, core(samples, slice, split), samples, slice, split);
    };
  }
  if (layer.kind == kGptLatentAttention) {
    const LatentSizes sizes = {layer.output_shape[0], WholeAttribute(layer, "heads"),
                               layer.output_shape[1], LatentHeadsOf(layer)};
    return [sizes, core = layer.split.operations](int64_t samples, TokenSlice slice,
                                                  TensorParallel split) {
      return LatentKernels(sizes, core(samples, slice, split), samples, split);
    };
  }
  if (layer.kind == kGptMlp) {
    const MlpSizes sizes = {layer.output_shape[0], layer.output_shape[1],
                            WholeAttribute(layer, "inner"), Attribute(layer, "feed_forward") > 0,
                            HasParameter(layer, "b2")};
    return std::bind(MlpKernels, sizes, _1, _2, _3);
  }
  if (layer.kind == kGptExperts) {
    return std::bind(ExpertsKernels, MegatronExperts::Of(layer), _1, _2, _3);
  }
  if (layer.kind == kGptEmbedding) return EmbeddingOperations(layer);
  if (layer.kind == kFurtherToken) return FurtherTokenKernels(layer);
  if (layer.kind == kGptHead) return HeadKernels(layer, loss);
  return nullptr;
}

}  // namespace

ModelGraph WithMegatronKernels(ModelGraph graph, AttentionImplementation attention,
                               LossImplementation loss) {
  if (attention == AttentionImplementation::kUnfused)
    graph = WithUnfusedAttention(std::move(graph));
  for (LayerSpec& layer : graph.layers) {
    const Kernels own = KernelsOf(layer, loss);
    if (own == nullptr) continue;
    const Kernels kernels = [own](int64_t samples, TokenSlice slice, TensorParallel split) {
      LayerOperations ops = own(samples, slice, split);
      for (Operation& o : ops.backward_weight) o.sums = GradientSums::kApart;
      return ops;
    };
    if (layer.kind == kGptHead) layer.attributes[kLossKernels] = static_cast<double>(loss);
    layer.split.operations = kernels;
    layer.operations = [kernels](int64_t samples, TokenSlice slice) {
      return kernels(samples, slice, TensorParallel());
    };
    if (layer.kind != kGptExperts) continue;
    layer.slice_costs = nullptr;
    layer.split.collectives = [experts = MegatronExperts::Of(layer)](int64_t samples, TokenSlice,
                                                                     TensorParallel split) {
      return experts.Collectives(samples, split);
    };
    layer.split.context = ContextUse::kRows;
    layer.set_costs = nullptr;
  }
  return graph;
}

}  // namespace pipelab
