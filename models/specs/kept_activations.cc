#include "models/specs/kept_activations.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "models/graph/cost_math.h"
#include "models/specs/change_costs.h"
#include "models/specs/gpt_attention_spec.h"
#include "models/specs/gpt_experts_spec.h"
#include "models/specs/gpt_head_spec.h"
#include "models/specs/gpt_latent_attention_spec.h"
#include "models/specs/gpt_mlp_spec.h"
#include "models/specs/megatron_kernels.h"
#include "models/specs/unfused_attention_spec.h"

namespace pipelab {
namespace {

// Numbers that unfused attention keeps for each pair of tokens and head: the softmax, and with
// dropout its output and a mask of bytes, each half a number.
constexpr char kScores[] = "kept_scores";

bool HasDropout(const LayerSpec& layer) { return Attribute(layer, "dropout") > 0; }

// Bias, dropout and residual are one kernel in TorchScript, which keeps a mask also where it drops
// nothing: logs of two forks have these bytes, in GPTs without dropout (experiments/published:
// seq1f1b.json, vocabulary.json).
bool KeepsMask(const LayerSpec& layer) {
  return HasDropout(layer) ||
         std::any_of(layer.parameters.begin(), layer.parameters.end(), [&](const ParameterSpec& p) {
           return p.name == absl::StrCat(layer.name, "/bo") ||
                  p.name == absl::StrCat(layer.name, "/b2");
         });
}

// Pairs of all samples and of one device's heads.
struct Pairs {
  int64_t tokens, heads, head_size;

  int64_t Of(int64_t samples, TensorParallel split) const {
    return samples * heads / split.degree * tokens * tokens;
  }
};

Pairs PairsOf(const LayerSpec& layer) {
  return {layer.output_shape[0], WholeAttribute(layer, "heads"),
          WholeAttribute(layer, "head_size")};
}

void KeepMore(Bytes more, Bytes for_weight, LayerCosts* costs) {
  costs->kept += more;
  costs->forward_peak += more;
  if (costs->kept_when_dropped.value() > 0) costs->recompute_peak += more;
  costs->kept_for_weight += for_weight;
}

// A slice of fused attention as Seq1F1B's code has it. In the place of one room for q, k and v of
// whole samples, each slice keeps its own; the keys and values of all slices up to it are there
// once more, beside those up to the one before while they are copied. Gradients of keys and values
// come for all slices up to its own, beside those that the later slices left.
struct SlicedAttention {
  int64_t tokens, hidden, width, keys;  // of one device: columns of q, of k and v together

  void Change(int64_t samples, TokenSlice slice, TensorParallel split, bool dropout,
              LayerCosts* costs) const {
    if (slice.whole()) return;
    const SplitRows rows(samples * slice.count, split);
    const int64_t w = width / split.degree, kv = keys / split.degree, m = rows.all;
    const Bytes sample = FloatBytes(samples * tokens * (w + kv)), none;
    const Bytes copied = FloatBytes(m * kv), gradients = FloatBytes(samples * tokens * kv);
    const Bytes own = FloatBytes(m * (w + kv)) + copied;
    const Bytes room = slice.first == 0 ? sample : none;  // ours
    costs->kept += own - room;
    costs->forward_peak += own - room + FloatBytes(samples * slice.first * kv);
    costs->kept_when_dropped = copied;
    costs->recompute_peak = costs->forward_peak - copied;
    const Bytes ends = slice.end() == tokens ? gradients : none;
    costs->carried = ends - (slice.first == 0 ? gradients : none);
    const Bytes of_core = FloatBytes(m * 2 * w + samples * slice.end() * kv);  // dy, dq; dk and dv
    const Bytes branch = dropout || rows.scattered() ? FloatBytes(m * hidden) : none;
    // The kernel's; q, k and v's together and that of the norm's output, and dx.
    costs->backward_input_peak =
        branch + ends + std::max(of_core, FloatBytes(m * (w + kv) + (m + rows.own) * hidden));
    costs->backward_peak = costs->backward_input_peak;
  }
};

SlicedAttention SlicedAttentionOf(const LayerSpec& layer) {
  const int64_t head = WholeAttribute(layer, "head_size");
  return {layer.output_shape[0], layer.output_shape[1], WholeAttribute(layer, "heads") * head,
          2 * WholeAttribute(layer, "kv_heads") * head};
}

void KeepAsMegatron(LayerSpec* layer, ProductInputs inputs) {
  const int64_t tokens = layer->output_shape[0], hidden = layer->output_shape[1];
  const bool dropout = HasDropout(*layer), mask = KeepsMask(*layer),
             unfused = layer->kind == kUnfusedAttention;
  const bool experts = layer->kind == kGptExperts;
  // Routed experts keep the rows that they take besides; shared ones take the norm's output.
  const int64_t chosen = experts ? WholeAttribute(*layer, "chosen") : 1;
  const int64_t shared = experts ? WholeAttribute(*layer, "shared") : 0;
  const int64_t choices = chosen + shared;
  const int64_t inner =
      experts || layer->kind == kGptMlp ? choices * WholeAttribute(*layer, "inner") : 0;
  const int64_t latent = layer->kind == kGptLatentAttention
                             ? WholeAttribute(*layer, "query_rank") + WholeAttribute(*layer, "rank")
                             : 0;
  // Besides its logits the router has them and the probabilities in float32.
  const int64_t scores = experts ? 3 * WholeAttribute(*layer, "experts") : 0;
  const Pairs pairs = unfused ? PairsOf(*layer) : Pairs{0, 0, 1};
  if (unfused) layer->attributes[kScores] = dropout ? 2.5 : 1;
  const bool fused = layer->kind == kGptAttention;
  const SlicedAttention sliced = fused ? SlicedAttentionOf(*layer) : SlicedAttention();
  ChangeCosts(layer, [=](int64_t samples, TokenSlice slice, TensorParallel split,
                         LayerCosts* costs) {
    if (fused) sliced.Change(samples, slice, split, dropout, costs);
    const SplitRows rows(samples * slice.CountOf(tokens), split);
    const int64_t own = rows.own * hidden;
    // The norm's output and the GELU's serve weight gradients. With expert parallelism ours keep
    // the rows that experts take already.
    const int64_t taken = !experts || split.experts > 1 ? 0 : chosen;
    const int64_t numbers =
        own + rows.own * latent + rows.all * (inner / split.degree + taken * hidden);
    const Bytes products = FloatBytes(inputs == ProductInputs::kHalfAsWide ? numbers / 2 : numbers);
    const Bytes masks = mask ? FloatBytes(own / 2) : Bytes(0);
    const Bytes dropped = dropout ? FloatBytes(pairs.Of(samples, split) * 3 / 2) : Bytes(0);
    const Bytes router = FloatBytes((split.sequence ? rows.own : rows.all) * scores);
    KeepMore(products + masks + dropped + router, products, costs);
  });
}

// The loss is computed in 4 bytes a number: the softmax is kept, and the logits of half precision
// are there beside it while the forward runs, its gradient while the backward does.
void KeepSoftmaxOfLoss(LayerSpec* layer) {
  const int64_t tokens = layer->input_shapes[0][0];
  const ParameterSpec& table = layer->parameters.back();  // or the bias, as long
  const int64_t words = std::max(table.shape.front(), table.shape.back());
  ChangeCosts(layer,
              [=](int64_t samples, TokenSlice slice, TensorParallel split, LayerCosts* costs) {
                const SplitRows rows(samples * slice.CountOf(tokens), split);
                const Bytes logits = FloatBytes(rows.all * words / split.degree);
                KeepMore(logits, Bytes(0), costs);
                costs->forward_peak += logits;
                costs->backward_input_peak += logits;
                costs->backward_peak += logits;
              });
}

void RecomputeSoftmax(LayerSpec* layer) {
  const Pairs pairs = PairsOf(*layer);
  const auto kept = layer->attributes.find(kScores);
  const double numbers = kept == layer->attributes.end() ? 1 : kept->second;
  const bool dropout = HasDropout(*layer);
  layer->attributes[kScores] = 0;
  const auto product_flops = [pairs](int64_t samples, TensorParallel split) {
    return MatmulFlops(pairs.Of(samples, split), 1, pairs.head_size);
  };
  ChangeCosts(layer, [=](int64_t samples, TensorParallel split, LayerCosts* costs) {
    const Bytes scores =
        FloatBytes(static_cast<int64_t>(static_cast<double>(pairs.Of(samples, split)) * numbers));
    costs->kept -= scores;
    // They come back for the length of the backward.
    costs->backward_input_peak += scores;
    costs->backward_peak += scores;
    costs->backward_input += 2.0 * product_flops(samples, split);
  });
  ChangeOperations(layer, [=](int64_t samples, TensorParallel split, LayerOperations* ops) {
    const int64_t all = pairs.Of(samples, split);
    std::vector<Operation> again;
    for (int i = 0; i < 2; ++i) {  // to the scores, and from them
      Operation product = i == 0 ? MatmulOperation(pairs.tokens, pairs.tokens, pairs.head_size)
                                 : MatmulOperation(pairs.tokens, pairs.head_size, pairs.tokens);
      product.flops = product_flops(samples, split);
      product.numbers = all + 2 * (all / pairs.tokens) * pairs.head_size;
      again.push_back(product);
    }
    again.push_back(MemoryOperation(OperationKind::kActivation, 2 * all));
    if (dropout) again.push_back(ElementwiseOperation(2 * all + all / 2));
    ops->backward_input.insert(ops->backward_input.begin(), again.begin(), again.end());
  });
}

}  // namespace

ModelGraph WithMegatronActivations(ModelGraph graph, ProductInputs inputs) {
  const bool in_place = LossImplementationOf(graph) == LossImplementation::kTransformerEngine;
  for (LayerSpec& layer : graph.layers) {
    if (layer.kind == kGptAttention || layer.kind == kUnfusedAttention || layer.kind == kGptMlp ||
        layer.kind == kGptExperts || layer.kind == kGptLatentAttention) {
      KeepAsMegatron(&layer, inputs);
    }
    if (layer.kind == kGptHead && !in_place) KeepSoftmaxOfLoss(&layer);
  }
  return graph;
}

bool AllowsSelectiveRecompute(const ModelGraph& graph) {
  return std::any_of(graph.layers.begin(), graph.layers.end(), [](const LayerSpec& layer) {
    return layer.kind == kUnfusedAttention &&
           (layer.attributes.count(kScores) == 0 || Attribute(layer, kScores) > 0);
  });
}

ModelGraph WithSelectiveRecompute(ModelGraph graph) {
  for (LayerSpec& layer : graph.layers) {
    if (layer.kind == kUnfusedAttention) RecomputeSoftmax(&layer);
  }
  return graph;
}

}  // namespace pipelab
