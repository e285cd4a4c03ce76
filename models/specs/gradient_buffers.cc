#include "models/specs/gradient_buffers.h"

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "models/specs/further_token_spec.h"
#include "models/specs/gpt_attention_spec.h"
#include "models/specs/gpt_experts_spec.h"
#include "models/specs/gpt_latent_attention_spec.h"
#include "models/specs/gpt_mlp_spec.h"

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

}  // namespace

ModelGraph WithGradientBuffers(ModelGraph graph) {
  // Devices of a group divide two weights of one shape into parts of one shape only if they divide
  // the same dimension.
  std::map<std::pair<std::vector<int64_t>, int>, int> shapes;
  for (LayerSpec& layer : graph.layers) {
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
