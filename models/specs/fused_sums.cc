#include "models/specs/fused_sums.h"

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "models/graph/cost_math.h"
#include "models/specs/change_costs.h"
#include "models/specs/further_token_spec.h"
#include "models/specs/gpt_attention_spec.h"
#include "models/specs/gpt_experts_spec.h"
#include "models/specs/gpt_head_spec.h"
#include "models/specs/gpt_latent_attention_spec.h"
#include "models/specs/gpt_mlp_spec.h"
#include "models/specs/megatron_kernels.h"
#include "models/specs/megatron_operations.h"

namespace pipelab {
namespace {

bool HasProductsOfTransformerEngine(const LayerSpec& layer) {
  const std::string kinds[] = {kGptAttention, kGptLatentAttention, kGptMlp, kGptExperts,
                               kFurtherToken};
  return std::find(std::begin(kinds), std::end(kinds), layer.kind) != std::end(kinds);
}

// The first parameter of a head for a further token is the embedding, and the first of a layer with
// experts that is a matrix is the router.
bool IsWeight(const LayerSpec& layer, const ParameterSpec& p) {
  if (p.experts > 0) return p.shape.size() == 3;
  if (p.shape.size() != 2) return false;
  const bool apart = layer.kind == kGptExperts || layer.kind == kFurtherToken;
  const auto first = std::find_if(layer.parameters.begin(), layer.parameters.end(),
                                  [](const ParameterSpec& q) { return q.shape.size() == 2; });
  return !apart || &p != &*first;
}

void FuseSums(LayerSpec* layer) {
  if (!layer->split.operations) return;
  ChangeOperations(layer, [](int64_t, TokenSlice, TensorParallel, LayerOperations* ops) {
    DropGradientSums(/*of_products=*/true, &ops->backward_weight);
    for (Operation& o : ops->backward_weight) o.sums = GradientSums::kProduct;
  });
}

// The gradient, in the activations' numbers, that a head's product leaves for autograd is there
// from the end of the product on, beside the input's gradient, when the loss's own numbers have
// gone.
void HoldGradientOfHead(LayerSpec* layer, bool loss_in_place) {
  const int64_t tokens = layer->input_shapes[0][0], c = layer->input_shapes[0][1];
  int64_t largest = 0;
  for (const ParameterSpec& p : layer->parameters) largest = std::max(largest, p.size());
  ChangeCosts(
      layer, [=](int64_t samples, TokenSlice slice, TensorParallel split, LayerCosts* costs) {
        const SplitRows rows(samples * slice.CountOf(tokens), split);
        const Bytes gradient = FloatBytes(largest / split.degree), input = FloatBytes(rows.all * c);
        const Bytes gone =
            loss_in_place ? Bytes(0) : FloatBytes(rows.all * (largest / c) / split.degree);
        costs->backward_weight_peak = std::max(costs->backward_weight_peak, gradient);
        costs->backward_peak = std::max(costs->backward_peak, input + gradient - gone);
      });
}

}  // namespace

ModelGraph WithFusedSums(ModelGraph graph) {
  // Devices of a group divide two weights of one shape into parts of one shape only if they divide
  // the same dimension.
  std::map<std::pair<std::vector<int64_t>, int>, int> shapes;
  const bool in_place = LossImplementationOf(graph) == LossImplementation::kTransformerEngine;
  for (LayerSpec& layer : graph.layers) {
    FuseSums(&layer);
    if (layer.kind == kGptHead) HoldGradientOfHead(&layer, in_place);
    if (!HasProductsOfTransformerEngine(layer)) continue;
    for (ParameterSpec& p : layer.parameters) {
      if (!IsWeight(layer, p)) continue;
      const int expert = p.experts > 0 ? 1 : 0;
      const std::vector<int64_t> shape(p.shape.begin() + expert, p.shape.end());
      const int number = static_cast<int>(shapes.size());
      const int buffer =
          shapes.emplace(std::make_pair(shape, p.split_dimension - expert), number).first->second;
      if (buffer < kMostGradientBuffers) p.gradient_buffer = buffer;
    }
  }
  return graph;
}

}  // namespace pipelab
