#include "models/specs/megatron_experts.h"

#include "models/specs/expert_products.h"

namespace pipelab {
namespace {

// Sums in float32 are read and written: four numbers of half precision each.
constexpr int64_t kSummed = 4;

// A gated feed-forward of so many rows in all, of each expert its part.
void AddFeedForward(int64_t rows, int64_t c, int64_t f, int64_t experts, LayerOperations* ops) {
  AddExpertProducts(rows, 2 * f, c, experts, kSummed, ops);
  AddMemory(OperationKind::kGelu, 3 * rows * f, 5 * rows * f, ops);
  AddExpertProducts(rows, c, f, experts, kSummed, ops);
}

}  // namespace

MegatronExperts MegatronExperts::Of(const LayerSpec& layer) {
  return {layer.output_shape[0],           layer.output_shape[1],
          WholeAttribute(layer, "inner"),  WholeAttribute(layer, "experts"),
          WholeAttribute(layer, "chosen"), WholeAttribute(layer, "shared")};
}

void MegatronExperts::AddOperations(int64_t samples, TensorParallel split,
                                    LayerOperations* ops) const {
  const SplitRows both(samples * tokens, split);
  const int64_t all = both.all, m = both.own;  // rows of a group, and what the device routes
  const int64_t c = hidden, sent = m * chosen, scores = m * experts;
  // A group that splits each expert has the rows of all its devices.
  const int64_t rows = split.whole_experts ? sent : all * chosen;
  AddMatmul(m, experts, c, ops);
  AddMemory(OperationKind::kLoss, 2 * 3 * scores, 2 * 3 * scores, ops);
  AddElementwise(2 * sent * c, sent * c + m * c, ops);
  if (split.experts > 1) AddElementwise(2 * rows * c, 2 * rows * c, ops);
  AddFeedForward(rows, c, inner / split.expert_degree(), experts / split.experts, ops);
  if (split.experts > 1) AddElementwise(2 * rows * c, 2 * rows * c, ops);
  AddElementwise(sent * c + m * c, 2 * sent * c, ops);
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
  if (split.experts > 1) AddExchanges(FloatBytes(m * chosen * hidden), &collectives);
  return collectives;
}

}  // namespace pipelab
