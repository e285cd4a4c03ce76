#include "models/specs/launched_kernels.h"

#include <algorithm>
#include <cstdint>
#include <initializer_list>
#include <utility>
#include <vector>

#include "glog/logging.h"
#include "models/specs/change_costs.h"
#include "models/specs/gpt_attention_spec.h"
#include "models/specs/gpt_experts_spec.h"
#include "models/specs/gpt_head_spec.h"
#include "models/specs/gpt_latent_attention_spec.h"
#include "models/specs/gpt_mlp_spec.h"
#include "models/specs/megatron_operations.h"

namespace pipelab {
namespace {

bool IsCast(const Operation& o) { return o.kind == OperationKind::kMatmul && !o.half; }

void CastInputs(OperationPass* pass) {
  OperationPass with;
  for (const Operation& o : *pass) {
    const bool made = !with.empty() && with.back().kind == OperationKind::kLayerNorm;
    if (IsCast(o) && !made) with.push_back(ElementwiseOperation(2 * o.m * o.k * o.groups));
    with.push_back(o);
  }
  *pass = std::move(with);
}

// `parts`: where rows are split by tokens, the branch's gradient, `hidden` wide, is cast by those
// who have parts of it, before it is gathered.
void CastGradients(int64_t hidden, int64_t parts, OperationPass* pass) {
  OperationPass with;
  for (const Operation& o : *pass) {
    const int64_t numbers = 2 * o.m * o.k * o.groups / (o.k == hidden ? parts : 1);
    if (IsCast(o)) with.push_back(ElementwiseOperation(numbers));
    with.push_back(o);
  }
  *pass = std::move(with);
}

void StayHalf(LayerOperations* ops) {
  for (OperationPass* pass : {&ops->forward, &ops->backward_input, &ops->backward_weight}) {
    for (Operation& o : *pass) o.half = o.kind == OperationKind::kMatmul;
  }
}

void Add(std::initializer_list<int64_t> numbers, OperationPass* pass) {
  for (const int64_t n : numbers) pass->push_back(ElementwiseOperation(n));
}

// One kernel for each expert.
void AddEach(int64_t experts, int64_t numbers, OperationPass* pass) {
  for (int64_t e = 0; e < experts; ++e) pass->push_back(ElementwiseOperation(numbers / experts));
}

// In place of one kernel that reads gate and factor and writes their product, backward reads these
// and the gradient and writes two: SiLU and product; backward the product's two, SiLU's, and the
// two put together.
void UnfuseGate(LayerSpec* layer) {
  const int64_t tokens = layer->output_shape[0], inner = WholeAttribute(*layer, "inner");
  const auto numbers = [=](int64_t samples, TensorParallel split) {
    return SplitRows(samples * tokens, split).all * (inner / split.degree);
  };
  ChangeOperations(layer, [=](int64_t samples, TensorParallel split, LayerOperations* ops) {
    const int64_t n = numbers(samples, split);
    const auto replace = [](std::initializer_list<int64_t> by, OperationPass* pass) {
      const auto gate = std::find_if(pass->begin(), pass->end(), [](const Operation& o) {
        return o.kind == OperationKind::kGelu;
      });
      if (gate == pass->end()) return;
      *gate = MemoryOperation(OperationKind::kGelu, *by.begin());
      OperationPass others;
      for (auto other = by.begin() + 1; other != by.end(); ++other) {
        others.push_back(ElementwiseOperation(*other));
      }
      pass->insert(gate + 1, others.begin(), others.end());
    };
    replace({2 * n, 3 * n}, &ops->forward);
    replace({3 * n, 3 * n, 3 * n, 4 * n}, &ops->backward_input);
  });
  ChangeCosts(layer, [=](int64_t samples, TensorParallel split, LayerCosts* costs) {
    const Bytes more = FloatBytes(numbers(samples, split));
    costs->kept += more;
    costs->forward_peak += more;
  });
}

// Between the product and attention: q, k and v by head; k and v put together, and that by token.
// Backward the gradients of k and v are put together, then those of all three, and these by token.
void CopyHeads(LayerSpec* layer) {
  const int64_t tokens = layer->output_shape[0];
  const int64_t head = WholeAttribute(*layer, "head_size");
  const int64_t heads = WholeAttribute(*layer, "heads");
  const int64_t kv_heads = WholeAttribute(*layer, "kv_heads");
  const auto numbers = [=](int64_t samples, TensorParallel split, int64_t of_heads) {
    return SplitRows(samples * tokens, split).all * (of_heads / split.degree * head);
  };
  ChangeOperations(layer, [=](int64_t samples, TensorParallel split, LayerOperations* ops) {
    const int64_t kv = numbers(samples, split, 2 * kv_heads);
    const int64_t all = numbers(samples, split, heads) + kv;
    Add({2 * all, 2 * kv, 2 * kv}, &ops->forward);
    Add({2 * kv, 2 * all, 2 * all}, &ops->backward_input);
  });
  ChangeCosts(layer, [=](int64_t samples, TensorParallel split, LayerCosts* costs) {
    const Bytes more = FloatBytes(numbers(samples, split, 2 * kv_heads));
    costs->kept += more;
    costs->forward_peak += more;
  });
}

void UnfuseLoss(LayerSpec* layer) {
  const int64_t tokens = layer->input_shapes[0][0], hidden = layer->input_shapes[0][1];
  int64_t words = 0;
  for (const ParameterSpec& p : layer->parameters) words = std::max(words, p.size() / hidden);
  const auto logits = [=](int64_t samples, TensorParallel split) {
    return SplitRows(samples * tokens, split).all * (words / split.degree);
  };
  ChangeOperations(layer, [=](int64_t samples, TensorParallel split, LayerOperations* ops) {
    const int64_t n = logits(samples, split);
    const auto replace = [](std::initializer_list<int64_t> by, OperationPass* pass) {
      pass->erase(std::remove_if(pass->begin(), pass->end(),
                                 [](const Operation& o) { return o.kind == OperationKind::kLoss; }),
                  pass->end());
      for (const int64_t numbers : by) {
        pass->push_back(MemoryOperation(OperationKind::kLoss, numbers));
      }
    };
    replace({3 * n, 2 * n, 4 * n, 4 * n, 2 * n, 4 * n}, &ops->forward);
    replace({4 * n, 3 * n}, &ops->backward_input);
  });
  ChangeCosts(layer, [=](int64_t samples, TensorParallel split, LayerCosts* costs) {
    costs->forward_peak += FloatBytes(logits(samples, split));  // 2 bytes more a number
  });
}

// Read and written in 4 bytes, beside the gradient itself.
void SumGradients(LayerSpec* layer) {
  const std::vector<ParameterSpec> parameters = layer->parameters;
  ChangeOperations(layer, [parameters](int64_t, TensorParallel split, LayerOperations* ops) {
    DropGradientSums(/*of_products=*/false, &ops->backward_weight);
    for (const ParameterSpec& p : parameters) Add({5 * p.size_on(split)}, &ops->backward_weight);
  });
}

void AddBiases(LayerSpec* layer) {
  const int64_t tokens = layer->output_shape[0], hidden = layer->output_shape[1];
  const int64_t chosen = WholeAttribute(*layer, "chosen");
  const int64_t experts = WholeAttribute(*layer, "experts");
  ChangeOperations(layer, [=](int64_t samples, TensorParallel split, LayerOperations* ops) {
    const SplitRows rows(samples * tokens, split);
    const int64_t n = (split.whole_experts ? rows.own : rows.all) * chosen * hidden;
    const int64_t of_device = experts / split.experts;
    AddEach(of_device, 2 * n, &ops->forward);         // bias times weight, written in 4 bytes
    AddEach(of_device, 5 * n, &ops->forward);         // added to the output
    Add({4 * n, 3 * n}, &ops->forward);               // put together, and cast
    Add({3 * n}, &ops->backward_input);               // the gradient in 4 bytes
    AddEach(of_device, 3 * n, &ops->backward_input);  // and in 2, expert by expert
    for (int i = 0; i < 2; ++i) {  // products of the weights' and biases' gradients,
      AddEach(of_device, 4 * n, &ops->backward_input);  // and their sums
      AddEach(of_device, 2 * n, &ops->backward_input);
    }
    Add({2 * n}, &ops->backward_input);  // put together
  });
}

void FuseRouter(LayerSpec* layer) {
  const int64_t tokens = layer->output_shape[0], experts = WholeAttribute(*layer, "experts");
  ChangeOperations(layer, [=](int64_t samples, TensorParallel split, LayerOperations* ops) {
    const int64_t scores = SplitRows(samples * tokens, split).own * experts;
    const auto replace = [](int64_t numbers, OperationPass* pass) {
      const auto chooses = [](const Operation& o) { return o.kind == OperationKind::kLoss; };
      const auto first = std::find_if(pass->begin(), pass->end(), chooses);
      if (first == pass->end()) return;
      *first = MemoryOperation(OperationKind::kLoss, numbers);
      pass->erase(std::remove_if(first + 1, pass->end(), chooses), pass->end());
    };
    replace(2 * scores + scores / 2, &ops->forward);
    replace(2 * scores, &ops->backward_input);
  });
}

// Routed experts are the first with a gate. The cast is of the input of the product behind the
// gate, forward, and of what the product before it reads, backward.
void FuseGate(bool forward, OperationPass* pass) {
  const auto gate = std::find_if(pass->begin(), pass->end(),
                                 [](const Operation& o) { return o.kind == OperationKind::kGelu; });
  if (gate == pass->end()) return;
  const auto cast = forward ? gate + 1 : gate - 2;
  CHECK(cast->kind == OperationKind::kElementwise) << "fused experts without casts";
  pass->erase(std::max(gate, cast));
  pass->erase(std::min(gate, cast));
}

// Routed experts' products, gates, casts and permutations.
bool IsOfExperts(const Operation& o) {
  return !o.half && o.kind != OperationKind::kLoss && o.kind != OperationKind::kLayerNorm;
}

void LaunchGraphs(const LaunchedKernels& k, LayerSpec* layer) {
  const bool attention = layer->kind == kGptAttention || layer->kind == kGptLatentAttention;
  const bool experts = layer->kind == kGptExperts;
  const bool whole = k.graphed_step || (attention && k.graphed_attention) ||
                     (layer->kind == kGptMlp && k.graphed_feed_forward) ||
                     (experts && k.graphed_experts);
  if (!whole && !(experts && k.graphed_routers)) return;
  ChangeOperations(layer, [whole](int64_t, TensorParallel, LayerOperations* ops) {
    for (OperationPass* pass : {&ops->forward, &ops->backward_input, &ops->backward_weight}) {
      for (Operation& o : *pass) {
        if (whole || !IsOfExperts(o)) o.calls = 0;
      }
    }
  });
}

// How many numbers an operation of Transformer Engine writes; 0: of another kernel. Attention's
// gradient is counted as its queries'. `of_norm`: a norm of a pass reads and writes so many times
// what it gives; 0: it gives none.
int64_t OutputOf(const Operation& o, int64_t of_norm) {
  if (o.kind == OperationKind::kMatmul) return o.m * o.n * o.groups;
  if (o.kind == OperationKind::kAttention) return o.m * o.n * o.k;
  return o.kind == OperationKind::kLayerNorm && of_norm > 0 ? o.numbers / of_norm : 0;
}

void FillOutputs(LayerSpec* layer) {
  ChangeOperations(layer, [](int64_t, TensorParallel, LayerOperations* ops) {
    for (const auto& [pass, of_norm] :
         {std::make_pair(&ops->forward, 2), std::make_pair(&ops->backward_input, 4),
          std::make_pair(&ops->backward_weight, 0)}) {
      OperationPass with;
      for (const Operation& o : *pass) {
        const int64_t output = OutputOf(o, of_norm);
        if (output > 0) with.push_back(ElementwiseOperation(output));
        with.push_back(o);
      }
      *pass = std::move(with);
    }
  });
}

bool IsSum(const TensorCollective& c) {
  return c.kind == Collective::kAllReduce || c.kind == Collective::kReduceScatter;
}

}  // namespace

ModelGraph WithFp8Casts(ModelGraph graph) {
  for (LayerSpec& layer : graph.layers) {
    const bool head = layer.kind == kGptHead;
    const bool branch = layer.kind != kGptExperts && layer.output_shape.size() == 2;
    const int64_t hidden = branch ? layer.output_shape[1] : 0;
    ChangeOperations(&layer, [=](int64_t, TensorParallel split, LayerOperations* ops) {
      if (head) return StayHalf(ops);
      CastInputs(&ops->forward);
      CastGradients(hidden, split.scatters_rows() ? split.degree : 1, &ops->backward_input);
    });
  }
  return graph;
}

ModelGraph WithEagerKernels(ModelGraph graph) {
  for (LayerSpec& layer : graph.layers) {
    if (layer.kind == kGptAttention) CopyHeads(&layer);
    if (layer.kind == kGptHead) UnfuseLoss(&layer);
    if (layer.kind == kGptMlp && Attribute(layer, "feed_forward") > 0) UnfuseGate(&layer);
    SumGradients(&layer);
  }
  return graph;
}

ModelGraph WithLaunchedKernels(ModelGraph graph, const LaunchedKernels& kernels) {
  for (LayerSpec& layer : graph.layers) {
    const bool experts = layer.kind == kGptExperts;
    if (experts && kernels.fused_routers) FuseRouter(&layer);
    if (experts && kernels.fused_experts) {
      ChangeOperations(&layer, [](int64_t, TensorParallel, LayerOperations* ops) {
        FuseGate(/*forward=*/true, &ops->forward);
        FuseGate(/*forward=*/false, &ops->backward_input);
      });
    }
    if (kernels.filled_outputs) FillOutputs(&layer);
    LaunchGraphs(kernels, &layer);
  }
  return graph;
}

ModelGraph WithSumsBesideWeights(ModelGraph graph) {
  for (LayerSpec& layer : graph.layers) {
    if (!layer.split.collectives) continue;
    layer.split.collectives = [of = layer.split.collectives](int64_t samples, TokenSlice slice,
                                                             TensorParallel split) {
      TensorCollectives c = of(samples, slice, split);
      if (!c.backward_input.empty() && IsSum(c.backward_input.back())) {
        c.backward_weight.push_back(c.backward_input.back());
        c.backward_input.pop_back();
      }
      return c;
    };
  }
  return graph;
}

ModelGraph WithExpertBiases(ModelGraph graph) {
  for (LayerSpec& layer : graph.layers) {
    if (layer.kind == kGptExperts) AddBiases(&layer);
  }
  return graph;
}

}  // namespace pipelab
