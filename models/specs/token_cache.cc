#include "models/specs/token_cache.h"

#include "absl/strings/str_cat.h"
#include "models/specs/add_spec.h"
#include "models/specs/gpt_attention_spec.h"
#include "models/specs/gpt_embedding_spec.h"
#include "models/specs/gpt_experts_spec.h"
#include "models/specs/gpt_head_spec.h"
#include "models/specs/gpt_mlp_spec.h"
#include "models/specs/norm_spec.h"

namespace pipelab {

absl::StatusOr<int64_t> CacheNumbers(const LayerSpec& layer) {
  const auto error = [&](const char* why) {
    return absl::InvalidArgumentError(
        absl::StrCat("layer \"", layer.name, "\" (", layer.kind, ") ", why));
  };
  if (layer.kind == kGptAttention) {
    if (Attribute(layer, "causal") == 0) return error("attends to later tokens: nothing to cache");
    if (!layer.data.empty()) return error("reads lengths of samples: it has no cache");
    return 2 * WholeAttribute(layer, "kv_heads") * WholeAttribute(layer, "head_size");
  }
  if (layer.kind == kGptExperts && Attribute(layer, "capacity") > 0) {
    return error("has a capacity, so what a token gives depends on others: it has no cache");
  }
  if (layer.kind == kGptEmbedding || layer.kind == kGptMlp || layer.kind == kGptExperts ||
      layer.kind == kGptHead || layer.kind == kNorm || layer.kind == kAdd) {
    return 0;
  }
  return error("has no cache of earlier tokens");
}

}  // namespace pipelab
