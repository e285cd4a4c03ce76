// Layers that work token by token, with what they need of earlier tokens in a cache
// (models/graph/token_run.h): GPTs' embeddings, attention, feed-forwards, experts, norms, sums and
// heads.
//
//   PIPELAB_ASSIGN_OR_RETURN(int64_t numbers, CacheNumbers(graph.layers[1]));   // a token
#ifndef PIPELAB_MODELS_SPECS_TOKEN_CACHE_H_
#define PIPELAB_MODELS_SPECS_TOKEN_CACHE_H_

#include <cstdint>

#include "absl/status/statusor.h"
#include "models/graph/layer_spec.h"

namespace pipelab {

// Numbers that the layer's cache has for each token: keys and values; 0 for layers that look at no
// other token. InvalidArgument names a layer that has no cache.
absl::StatusOr<int64_t> CacheNumbers(const LayerSpec& layer);

}  // namespace pipelab

#endif  // PIPELAB_MODELS_SPECS_TOKEN_CACHE_H_
