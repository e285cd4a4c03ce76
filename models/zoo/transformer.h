// The encoder-decoder Transformer for translation (Vaswani et al. 2017), T(L, H, A) in GPipe's
// words: L encoder and L decoder layers, feed-forward width H, A heads.
//
//   TransformerConfig c = TransformerLha(6, 8192, 16);            // 400M
//   PIPELAB_ASSIGN_OR_RETURN(ModelGraph g, BuildTransformer(c));
//
// Layers: source embedding, then attention (over all tokens) and MLP for each encoder layer, and a
// norm, which every decoder layer attends to; target embedding, then causal attention, cross
// attention and MLP for each decoder layer, and the head. Norms are in front of each part.
//
// Data (models/data/translation_batches.h): "source", "source_length", "tokens", and "targets" with
// kNoData behind the last.
#ifndef PIPELAB_MODELS_ZOO_TRANSFORMER_H_
#define PIPELAB_MODELS_ZOO_TRANSFORMER_H_

#include <cstdint>

#include "absl/status/statusor.h"
#include "models/graph/layer_spec.h"
#include "models/specs/gpt_embedding_spec.h"

namespace pipelab {

struct TransformerConfig {
  int64_t layers = 0;  // of the encoder, and of the decoder
  int64_t hidden = 0, heads = 0;
  int64_t head_size = 0;  // 0: hidden / heads
  int64_t feed_forward = 0;
  int64_t source_tokens = 0, target_tokens = 0;  // of a sample
  int64_t vocabulary = 0;                        // of both languages
  double dropout = 0;                            // of the residual branches, [0, 1)
  // One table for source and target: the tie "embedding". The output's is its own.
  bool shared_embedding = false;
  Positions positions = Positions::kLearned;
};

// GPipe's T(L, H, A): model width 1024. Not published, and chosen so that T(24,8192,16) and
// T(12,16384,32) have the same size, as their counts say: heads of 64. Not published either: 64000
// words, one embedding, sinusoidal positions, 256 tokens.
TransformerConfig TransformerLha(int64_t layers, int64_t feed_forward, int64_t heads);

// InvalidArgument names the field as an option, and its value.
absl::StatusOr<ModelGraph> BuildTransformer(const TransformerConfig& config);

}  // namespace pipelab

#endif  // PIPELAB_MODELS_ZOO_TRANSFORMER_H_
