#include "models/specs/recomputed_modules.h"

#include <algorithm>
#include <functional>
#include <iterator>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/types/optional.h"
#include "models/graph/cost_math.h"
#include "models/specs/change_costs.h"
#include "models/specs/gpt_attention_spec.h"
#include "models/specs/gpt_experts_spec.h"
#include "models/specs/gpt_latent_attention_spec.h"
#include "models/specs/gpt_mlp_spec.h"
#include "models/specs/unfused_attention_spec.h"

namespace pipelab {
namespace {

// What a part's recomputation changes of a layer.
struct Part {
  // The operations of the forward to do again, or a part of one.
  std::function<absl::optional<Operation>(const Operation&)> again;
  // Numbers that are not kept, and those that are inputs of products; none: all that it keeps.
  std::function<int64_t(const SplitRows&, TensorParallel)> numbers, inputs;
  // The forward's collectives that come again.
  std::function<bool(const TensorCollective&)> exchanges;
  // The devices with the other tokens exchange again what the forward did, too.
  bool attends = false;
};

bool IsExperts(const LayerSpec& layer) { return layer.kind == kGptExperts; }
bool IsMlp(const LayerSpec& layer) { return layer.kind == kGptMlp; }
bool IsLatent(const LayerSpec& layer) { return layer.kind == kGptLatentAttention; }
bool IsFusedAttention(const LayerSpec& layer) {
  return layer.kind == kGptAttention || IsLatent(layer);
}
bool IsBranch(const LayerSpec& layer) {
  return IsFusedAttention(layer) || layer.kind == kUnfusedAttention || IsMlp(layer) ||
         IsExperts(layer);
}
bool HasSharedExperts(const LayerSpec& layer) {
  return IsExperts(layer) && WholeAttribute(layer, "shared") > 0;
}
bool HasSavedProducts(const LayerSpec& layer) {
  return IsBranch(layer) && layer.kind != kUnfusedAttention;
}

bool IsOf(OperationKind kind, const Operation& o) { return o.kind == kind && !o.own; }

absl::optional<Operation> If(bool again, const Operation& o) {
  return again ? absl::make_optional(o) : absl::nullopt;
}

int64_t None(const SplitRows&, TensorParallel) { return 0; }

// The attention of devices with parts of the tokens, too: what they exchange, put in order and
// merge. Where they exchange heads, the output is not kept in the form of heads.
Part CoreAttention(const LayerSpec& layer) {
  const int64_t columns = WholeAttribute(layer, "heads") *
                          WholeAttribute(layer, IsLatent(layer) ? "value_size" : "head_size");
  Part part;
  part.attends = true;
  part.again = [](const Operation& o) {
    return If(IsOf(OperationKind::kAttention, o) || IsOf(OperationKind::kActivation, o) ||
                  IsOf(OperationKind::kGelu, o),
              o);
  };
  part.numbers = [columns](const SplitRows& rows, TensorParallel split) -> int64_t {
    const bool heads = split.context > 1 && split.exchange == ContextExchange::kHeads;
    return heads ? rows.all * (columns / split.degree) : 0;
  };
  part.inputs = None;
  return part;
}

Part BranchNorm(const LayerSpec& layer) {
  const int64_t hidden = layer.output_shape[1];
  Part part;
  // The branch's first operation: those of latent rows and of heads have other sizes.
  part.again = [first = true](const Operation& o) mutable {
    return If(std::exchange(first, false) && IsOf(OperationKind::kLayerNorm, o), o);
  };
  part.numbers = None;
  part.inputs = [hidden](const SplitRows& rows, TensorParallel) { return rows.own * hidden; };
  return part;
}

Part ExpertActivation(const LayerSpec& layer) {
  const int64_t inner = (WholeAttribute(layer, "chosen") + WholeAttribute(layer, "shared")) *
                        WholeAttribute(layer, "inner");
  Part part;
  part.again = [](const Operation& o) { return If(IsOf(OperationKind::kGelu, o), o); };
  part.numbers = None;
  part.inputs = [inner](const SplitRows& rows, TensorParallel split) {
    return rows.all * (inner / split.degree);
  };
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
    return If(before && (product || IsOf(OperationKind::kElementwise, o)), o);
  };
  part.inputs = None;
  part.numbers = [=](const SplitRows& rows, TensorParallel split) {
    return rows.all * (heads / split.degree) * (2 * head + value);
  };
  return part;
}

// Without numbers: all that the layer keeps.
Part WholeBranch(const LayerSpec&) {
  Part part;
  part.again = [](const Operation& o) { return If(!o.own, o); };
  part.exchanges = [](const TensorCollective&) { return true; };
  return part;
}

// Its products come behind those of the router and of routed experts.
Part SharedExperts(const LayerSpec& layer) {
  const int64_t inner = WholeAttribute(layer, "shared") * WholeAttribute(layer, "inner");
  constexpr int kBefore = 3;
  Part part;
  part.again = [products = 0](const Operation& o) mutable {
    const bool product = IsOf(OperationKind::kMatmul, o);
    products += product;
    return If(products > kBefore && (product || IsOf(OperationKind::kGelu, o)), o);
  };
  part.numbers = [inner](const SplitRows& rows, TensorParallel split) {
    return rows.all * (2 * inner / split.degree);  // gate and up
  };
  part.inputs = [inner](const SplitRows& rows, TensorParallel split) {
    return rows.all * (inner / split.degree);
  };
  // Its gather is the layer's first collective.
  part.exchanges = [first = true](const TensorCollective& c) mutable {
    return std::exchange(first, false) && c.kind == Collective::kAllGather;
  };
  return part;
}

bool IsGather(const TensorCollective& c) { return c.kind == Collective::kAllGather; }

// Products are counted in their order there: a narrow one before its wide one.
Part EverySecondOfLatent(const LayerSpec& layer) {
  const int64_t heads = WholeAttribute(layer, "heads"), rope = WholeAttribute(layer, "rope_size");
  const int64_t rank = WholeAttribute(layer, "rank"), of_q = WholeAttribute(layer, "query_rank");
  const int64_t hidden = layer.output_shape[1];
  const auto wide = LatentUpProjection(layer).numbers;
  Part part;
  // Here the narrow ones come first.
  part.again = [of_q, products = 0](const Operation& o) mutable -> absl::optional<Operation> {
    if (!IsOf(OperationKind::kMatmul, o))
      return If(
          !o.own && o.kind != OperationKind::kAttention && o.kind != OperationKind::kActivation, o);
    ++products;
    return If(of_q > 0 ? products == 3 || products == 4 : products == 1 || products == 4, o);
  };
  part.numbers = [=](const SplitRows& rows, TensorParallel split) {
    if (of_q > 0) return wide(rows, split);
    return rows.all * (heads / split.degree) * rope + rows.own * (rank + rope);
  };
  part.inputs = [=](const SplitRows& rows, TensorParallel) {
    return rows.own * (hidden + of_q + rank);
  };
  part.exchanges = IsGather;
  return part;
}

Part EverySecondOfExperts(const LayerSpec& layer) {
  const int64_t inner = WholeAttribute(layer, "inner"), hidden = layer.output_shape[1];
  const int64_t chosen = WholeAttribute(layer, "chosen"), shared = WholeAttribute(layer, "shared");
  Part part;
  part.again = [](const Operation& o) { return If(!o.own, o); };
  // Shared experts keep the input of their gate.
  part.numbers = [=](const SplitRows& rows, TensorParallel split) {
    return rows.all * (2 * chosen + shared) * (inner / split.degree);
  };
  part.inputs = [=](const SplitRows& rows, TensorParallel split) {
    const int64_t taken = split.experts > 1 ? 0 : chosen * hidden;
    return rows.own * hidden + rows.all * ((chosen + shared) * (inner / split.degree) + taken);
  };
  part.exchanges = IsGather;
  return part;
}

// One of our products has q, k and v, and one gate and up.
Part EverySecondProduct(const LayerSpec& layer) {
  if (IsLatent(layer)) return EverySecondOfLatent(layer);
  if (IsExperts(layer)) return EverySecondOfExperts(layer);
  const bool attention = IsFusedAttention(layer);
  const int64_t hidden = layer.output_shape[1];
  // Columns: of keys; of a gate's other half.
  const int64_t columns =
      attention ? WholeAttribute(layer, "kv_heads") * WholeAttribute(layer, "head_size")
                : WholeAttribute(layer, "inner");
  Part part;
  part.again = [=, products = 0](const Operation& o) mutable -> absl::optional<Operation> {
    if (!IsOf(OperationKind::kMatmul, o)) {
      const bool needed = attention || products < 2;  // the next block's input is kept
      const bool core = o.kind == OperationKind::kAttention ||
                        (attention && o.kind == OperationKind::kActivation);
      return If(needed && !o.own && !core, o);
    }
    if (products++ > 0) return If(attention, o);
    // k, or up: of all columns of q, k, v, or of gate and up, as many as of the whole layer's.
    const int64_t all = attention ? columns * 2 + WholeAttribute(layer, "heads") *
                                                      WholeAttribute(layer, "head_size")
                                  : columns * 2;
    return MatmulOperation(o.m, o.n * columns / all, o.k);
  };
  part.numbers = [=](const SplitRows& rows, TensorParallel split) {
    return rows.all * (columns / split.degree);
  };
  // The norm's output; the activation.
  part.inputs = [=](const SplitRows& rows, TensorParallel split) {
    return rows.own * hidden + (attention ? 0 : rows.all * (columns / split.degree));
  };
  part.exchanges = IsGather;
  return part;
}

// Operations of one device that are to be done again. `again` may count: it is asked in order.
std::vector<Operation> Again(const Part& part, const LayerOperations& ops) {
  auto again = part.again;
  std::vector<Operation> chosen;
  for (const Operation& o : ops.forward) {
    if (const absl::optional<Operation> once_more = again(o)) chosen.push_back(*once_more);
  }
  return chosen;
}

void Recompute(const Part& part, ProductInputs inputs, LayerSpec* layer) {
  const int64_t tokens = layer->output_shape[0];
  const int64_t narrower = inputs == ProductInputs::kHalfAsWide ? 2 : 1;
  ChangeCosts(layer, [=, operations = layer->split.operations](
                         int64_t samples, TensorParallel split, LayerCosts* costs) {
    Bytes less = costs->kept;
    if (part.numbers) {
      const SplitRows rows(samples * tokens, split);
      less = std::min(less,
                      FloatBytes(part.numbers(rows, split) + part.inputs(rows, split) / narrower));
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
  if (part.attends && layer->split.context_collectives) {
    layer->split.context_collectives = [collectives = layer->split.context_collectives](
                                           int64_t samples, TokenSlice slice,
                                           TensorParallel split) {
      TensorCollectives all = collectives(samples, slice, split);
      all.backward_input.insert(all.backward_input.begin(), all.forward.begin(), all.forward.end());
      return all;
    };
  }
  if (!part.exchanges || !layer->split.collectives) return;
  layer->split.collectives = [again = part.exchanges, collectives = layer->split.collectives](
                                 int64_t samples, TokenSlice slice, TensorParallel split) {
    TensorCollectives all = collectives(samples, slice, split);
    std::vector<TensorCollective> backward;
    std::copy_if(all.forward.begin(), all.forward.end(), std::back_inserter(backward), again);
    backward.insert(backward.end(), all.backward_input.begin(), all.backward_input.end());
    all.backward_input = std::move(backward);
    return all;
  };
}

struct Module {
  absl::string_view name;
  bool (*is_in)(const LayerSpec& layer);
  Part (*part)(const LayerSpec& layer);
};
constexpr Module kModules[] = {
    {"core_attn", IsFusedAttention, CoreAttention},
    {"layernorm", IsBranch, BranchNorm},
    {"mla_up_proj", IsLatent, LatentUpProjection},
    {"mlp", IsMlp, WholeBranch},
    {"moe", IsExperts, WholeBranch},
    {"moe_act", IsExperts, ExpertActivation},
    {"shared_experts", HasSharedExperts, SharedExperts},
    {"every_second_product", HasSavedProducts, EverySecondProduct},
};

// The layer's modules of these names, without parts of one that is rebuilt as a whole.
std::vector<const Module*> ModulesIn(const LayerSpec& layer,
                                     const std::vector<std::string>& names) {
  std::vector<const Module*> in;
  for (const Module& module : kModules) {
    if (std::count(names.begin(), names.end(), module.name) == 0 || !module.is_in(layer)) continue;
    if (module.part == WholeBranch) return {&module};
    in.push_back(&module);
  }
  return in;
}

}  // namespace

std::vector<absl::string_view> RecomputedModuleNames() {
  std::vector<absl::string_view> names;
  for (const Module& module : kModules) names.push_back(module.name);
  return names;
}

absl::StatusOr<ModelGraph> WithRecomputedModules(ModelGraph graph,
                                                 const std::vector<std::string>& modules,
                                                 ProductInputs inputs) {
  const std::vector<absl::string_view> known = RecomputedModuleNames();
  for (const std::string& name : modules) {
    if (std::count(known.begin(), known.end(), name) > 0) continue;
    return absl::InvalidArgumentError(absl::StrCat("recomputation of \"", name, "\""));
  }
  for (LayerSpec& layer : graph.layers) {
    for (const Module* module : ModulesIn(layer, modules)) {
      Recompute(module->part(layer), inputs, &layer);
    }
  }
  const bool core = std::count(modules.begin(), modules.end(), "core_attn") > 0;
  return core ? WithSelectiveRecompute(std::move(graph)) : std::move(graph);
}

}  // namespace pipelab
