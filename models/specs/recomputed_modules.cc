#include "models/specs/recomputed_modules.h"

#include <algorithm>
#include <functional>
#include <iterator>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "models/graph/cost_math.h"
#include "models/specs/change_costs.h"
#include "models/specs/gpt_attention_spec.h"
#include "models/specs/gpt_experts_spec.h"
#include "models/specs/gpt_latent_attention_spec.h"
#include "models/specs/gpt_mlp_spec.h"

namespace pipelab {
namespace {

// Of a layer, what a part's recomputation changes.
struct Part {
  // Of the forward's operations, those to do again.
  std::function<bool(const Operation&)> again;
  // Numbers that are not kept; whether they are inputs of products.
  std::function<int64_t(const SplitRows&, TensorParallel)> numbers;
  bool inputs_of_products = false;
  bool exchanges = false;  // the forward's collectives come again
};

bool IsAttention(const LayerSpec& layer) {
  return layer.kind == kGptAttention || layer.kind == kGptLatentAttention;
}
bool IsFeedForward(const LayerSpec& layer) {
  return layer.kind == kGptMlp || layer.kind == kGptExperts;
}

bool IsOf(OperationKind kind, const Operation& o) { return o.kind == kind && !o.own; }

Part CoreAttention() {
  return {[](const Operation& o) { return IsOf(OperationKind::kAttention, o); },
          [](const SplitRows&, TensorParallel) { return int64_t{0}; }};
}

Part BranchNorm(const LayerSpec& layer) {
  const int64_t hidden = layer.output_shape[1];
  Part part;
  // The branch's first operation: those of latent rows and of heads have other sizes.
  part.again = [first = true](const Operation& o) mutable {
    return std::exchange(first, false) && IsOf(OperationKind::kLayerNorm, o);
  };
  part.numbers = [hidden](const SplitRows& rows, TensorParallel) { return rows.own * hidden; };
  part.inputs_of_products = true;
  return part;
}

Part ExpertActivation(const LayerSpec& layer) {
  const int64_t inner = (WholeAttribute(layer, "chosen") + WholeAttribute(layer, "shared")) *
                        WholeAttribute(layer, "inner");
  Part part;
  part.again = [](const Operation& o) { return IsOf(OperationKind::kGelu, o); };
  part.numbers = [inner](const SplitRows& rows, TensorParallel split) {
    return rows.all * (inner / split.degree);
  };
  part.inputs_of_products = true;
  return part;
}

// Wide products, and what stands between them and attention.
Part LatentUpProjection(const LayerSpec& layer) {
  const int64_t heads = WholeAttribute(layer, "heads"), value = WholeAttribute(layer, "value_size");
  const int64_t nope = WholeAttribute(layer, "nope_size"),
                head = nope + WholeAttribute(layer, "rope_size");
  const int64_t narrow = WholeAttribute(layer, "rank") + WholeAttribute(layer, "rope_size");
  const int64_t narrow_q = WholeAttribute(layer, "query_rank");
  Part part;
  part.again = [=, before = true](const Operation& o) mutable {
    before = before && !IsOf(OperationKind::kAttention, o);
    const bool product = IsOf(OperationKind::kMatmul, o) && o.n != narrow && o.n != narrow_q;
    return before && (product || IsOf(OperationKind::kElementwise, o));
  };
  part.numbers = [=](const SplitRows& rows, TensorParallel split) {
    return rows.all * (heads / split.degree) * (2 * head + value);
  };
  return part;
}

// Without numbers: all that the layer keeps.
Part WholeBranch() {
  Part part;
  part.again = [](const Operation& o) { return !o.own; };
  part.exchanges = true;
  return part;
}

// Operations of one device that are to be done again. `again` may count: it is asked in order.
std::vector<Operation> Again(const Part& part, const LayerOperations& ops) {
  auto again = part.again;
  std::vector<Operation> chosen;
  std::copy_if(ops.forward.begin(), ops.forward.end(), std::back_inserter(chosen),
               [&](const Operation& o) { return again(o); });
  return chosen;
}

void Recompute(const Part& part, ProductInputs inputs, LayerSpec* layer) {
  const int64_t tokens = layer->output_shape[0];
  const bool narrow = part.inputs_of_products && inputs == ProductInputs::kHalfAsWide;
  ChangeCosts(layer, [=, operations = layer->split.operations](
                         int64_t samples, TensorParallel split, LayerCosts* costs) {
    Bytes less = costs->kept;
    if (part.numbers) {
      const int64_t numbers = part.numbers(SplitRows(samples * tokens, split), split);
      less = std::min(less, FloatBytes(narrow ? numbers / 2 : numbers));
    }
    costs->kept -= less;
    // They come back for the length of the backward.
    costs->backward_input_peak += less;
    costs->backward_peak += less;
    for (const Operation& o : Again(part, operations(samples, TokenSlice(), split))) {
      costs->backward_input += o.flops;
    }
  });
  ChangeOperations(layer, [part](int64_t, TensorParallel, LayerOperations* ops) {
    const std::vector<Operation> again = Again(part, *ops);
    ops->backward_input.insert(ops->backward_input.begin(), again.begin(), again.end());
  });
  if (!part.exchanges || !layer->split.collectives) return;
  layer->split.collectives = [collectives = layer->split.collectives](
                                 int64_t samples, TokenSlice slice, TensorParallel split) {
    TensorCollectives all = collectives(samples, slice, split);
    all.backward_input.insert(all.backward_input.begin(), all.forward.begin(), all.forward.end());
    return all;
  };
}

}  // namespace

absl::StatusOr<ModelGraph> WithRecomputedModules(ModelGraph graph,
                                                 const std::vector<std::string>& modules,
                                                 ProductInputs inputs) {
  for (const std::string& module : modules) {
    for (LayerSpec& layer : graph.layers) {
      const bool experts = layer.kind == kGptExperts;
      if (module == "core_attn") {
        if (IsAttention(layer)) Recompute(CoreAttention(), inputs, &layer);
      } else if (module == "layernorm") {
        if (IsAttention(layer) || IsFeedForward(layer)) {
          Recompute(BranchNorm(layer), inputs, &layer);
        }
      } else if (module == "mla_up_proj") {
        if (layer.kind == kGptLatentAttention) {
          Recompute(LatentUpProjection(layer), inputs, &layer);
        }
      } else if (module == "mlp") {
        if (layer.kind == kGptMlp) Recompute(WholeBranch(), inputs, &layer);
      } else if (module == "moe") {
        if (experts) Recompute(WholeBranch(), inputs, &layer);
      } else if (module == "moe_act") {
        if (experts) Recompute(ExpertActivation(layer), inputs, &layer);
      } else {
        return absl::InvalidArgumentError(absl::StrCat("recomputation of \"", module, "\""));
      }
    }
  }
  return graph;
}

}  // namespace pipelab
