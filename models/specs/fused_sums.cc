#include "models/specs/fused_sums.h"

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "models/specs/change_costs.h"
#include "models/specs/further_token_spec.h"
#include "models/specs/gpt_attention_spec.h"
#include "models/specs/gpt_experts_spec.h"
#include "models/specs/gpt_latent_attention_spec.h"
#include "models/specs/gpt_mlp_spec.h"
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

}  // namespace

ModelGraph WithFusedSums(ModelGraph graph) {
  // Devices of a group divide two weights of one shape into parts of one shape only if they divide
  // the same dimension.
  std::map<std::pair<std::vector<int64_t>, int>, int> shapes;
  for (LayerSpec& layer : graph.layers) {
    FuseSums(&layer);
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
