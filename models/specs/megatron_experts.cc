#include "models/specs/megatron_experts.h"

#include <initializer_list>
#include <vector>

#include "models/specs/expert_products.h"
#include "models/specs/gpt_experts_spec.h"

namespace pipelab {
namespace {

// Sums in float32 are read and written: four numbers of half precision each.
constexpr int64_t kSummed = 4;

// A gated feed-forward of so many rows in all, of each expert its part.
void AddFeedForward(int64_t rows, int64_t c, int64_t f, int64_t experts, LayerOperations* ops) {
  AddExpertProducts(rows, 2 * f, c, experts, kSummed, ops);
  AddMemory(OperationKind::kGelu, 3 * rows * f, 5 * rows * f, ops);
  AddExpertProducts(rows, c, f, experts, kSummed, ops);
  // Transformer Engine takes up each expert's weight by itself, and its gradient is another tensor.
  for (auto* pass : {&ops->forward, &ops->backward_weight}) {
    for (Operation& o : *pass) o.calls = o.groups;
  }
}

}  // namespace

MegatronExperts MegatronExperts::Of(const LayerSpec& layer) {
  return {layer.output_shape[0],           layer.output_shape[1],
          WholeAttribute(layer, "inner"),  WholeAttribute(layer, "experts"),
          WholeAttribute(layer, "chosen"), WholeAttribute(layer, "shared"),
          Attribute(layer, "sigmoid") > 0, Attribute(layer, kExpertBiases) > 0};
}

// The sizes are those of all scores, s numbers of float32, and of the chosen ones, k. Kernels in
// the code's order: what scores are chosen by, the choice, the weights, and twice a map of all:
// zeros, a copy of them, into which the chosen are scattered; the second one cast to integers
// before, and to bytes behind.
void MegatronExperts::AddChoice(int64_t rows, LayerOperations* ops) const {
  const int64_t s = 2 * rows * experts, k = 2 * rows * chosen;
  const auto add = [](std::initializer_list<int64_t> kernels, std::vector<Operation>* pass) {
    for (const int64_t n : kernels) pass->push_back(MemoryOperation(OperationKind::kLoss, n));
  };
  if (sigmoid) {
    // Sigmoid, bias, choice; its scores, their sum, a small number to it, quotient, scale.
    add({2 * s, 2 * s, s, 2 * k, k, k, 2 * k, 2 * k}, &ops->forward);
    add({2 * k, 2 * k, 2 * k, 3 * k, k, 2 * k, s, 2 * k, 3 * s}, &ops->backward_input);
  } else {
    add({s, 2 * k}, &ops->forward);  // choice, softmax
    add({2 * k, 3 * k, s, 2 * k}, &ops->backward_input);
  }
  add({s, 2 * s, 2 * k, s, 2 * s, 2 * s, 2 * k, s + s / 4}, &ops->forward);
}

// The kernels that count have a few numbers each.
void MegatronExperts::AddCounts(LayerOperations* ops) const {
  constexpr int kKernels = 7, kCopies = 5;
  for (int i = 0; i < kKernels + kCopies; ++i) {
    ops->forward.push_back(ElementwiseOperation(2 * experts));
  }
}

void MegatronExperts::AddOperations(int64_t samples, TensorParallel split,
                                    LayerOperations* ops) const {
  const SplitRows both(samples * tokens, split);
  const int64_t all = both.all, m = both.own;  // rows of a group, and what the device routes
  const int64_t c = hidden, sent = m * chosen;
  // A group that splits each expert has the rows of all its devices.
  const int64_t rows = split.whole_experts ? sent : all * chosen;
  AddMatmul(m, experts, c, ops);
  for (auto* pass : {&ops->forward, &ops->backward_input, &ops->backward_weight}) {
    pass->back().half = true;
  }
  AddChoice(m, ops);
  if (!split.once_per_node) AddElementwise(2 * sent * c, sent * c + m * c, ops);
  if (split.experts > 1 && !split.once_per_node) AddCounts(ops);
  if (split.experts > 1) AddElementwise(2 * rows * c, 2 * rows * c, ops);
  const int64_t f = inner / split.expert_degree();
  AddFeedForward(rows, c, f, experts / split.experts, ops);
  AddBiasGradients(biases, {m * experts, 2 * rows * f, rows * c}, ops);
  if (split.experts > 1) AddElementwise(2 * rows * c, 2 * rows * c, ops);
  if (!split.once_per_node) AddElementwise(sent * c + m * c, 2 * sent * c, ops);
  if (shared == 0) return;
  AddFeedForward(all, c, shared * inner / split.degree, 1, ops);
  AddElementwise(3 * m * c, 0, ops);
}

TensorCollectives MegatronExperts::Collectives(int64_t samples, TensorParallel split) const {
  const SplitRows rows(samples * tokens, split);
  const int64_t all = rows.all, m = rows.own;
  TensorCollectives collectives;
  if (shared > 0 || (split.degree > 1 && !split.scatters_rows())) {
    collectives = BranchCollectives(split, FloatBytes(all * hidden));
  }
  if (split.scatters_rows() && !split.whole_experts) {
    for (auto* pass : {&collectives.forward, &collectives.backward_input}) {
      AddGather(split, FloatBytes(all * chosen * hidden), pass);
      AddSum(split, FloatBytes(all * chosen * hidden), pass);
    }
  }
  if (split.experts == 1) return collectives;
  AddExchanges(FloatBytes(m * chosen * hidden), &collectives);
  if (split.once_per_node) return collectives;
  collectives.forward.push_back({Collective::kAllGather, Bytes(0)});  // counts
  for (auto* pass : {&collectives.forward, &collectives.backward_input}) {
    pass->push_back({Collective::kAllToAll, FloatBytes(2 * m * chosen)});  // weights in float32
  }
  return collectives;
}

}  // namespace pipelab
