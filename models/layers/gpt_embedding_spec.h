// The input of a GPT: a token table and a position table, added. What it costs; gpt_embedding.h
// runs it.
//
//   LayerSpec layer = GptEmbeddingSpec({.name = "embedding", .tokens = 128, .hidden = 256,
//   .vocabulary = 96});
//
// Output: {tokens, hidden}. Keeps nothing for the backward but the output's gradient, and draws the
// tokens from the data again when the weight gradient needs them.
#ifndef PIPELAB_MODELS_LAYERS_GPT_EMBEDDING_SPEC_H_
#define PIPELAB_MODELS_LAYERS_GPT_EMBEDDING_SPEC_H_

#include <cstdint>
#include <string>

#include "models/graph/layer_spec.h"

namespace pipelab {

inline constexpr char kGptEmbedding[] = "gpt_embedding";

struct GptEmbeddingSizes {
  std::string name;
  int64_t tokens = 0, hidden = 0, vocabulary = 0;
  double stddev = 0.02;  // of both tables
  std::string tie;       // of the token table; empty: not tied
};

// Places in LayerSpec::parameters and Layer::parameters_.
struct GptEmbeddingParameter {
  enum { kTable, kPositions };  // [V, C], [T, C]
};

LayerSpec GptEmbeddingSpec(const GptEmbeddingSizes& sizes);

}  // namespace pipelab

#endif  // PIPELAB_MODELS_LAYERS_GPT_EMBEDDING_SPEC_H_
