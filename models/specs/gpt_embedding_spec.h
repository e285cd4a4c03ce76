// The input of a Transformer: a token table's rows and positions, added. What it costs;
// gpt_embedding.cc runs it.
//
//   LayerSpec layer = GptEmbeddingSpec({.name = "embedding", .tokens = 128, .hidden = 256,
//                                       .vocabulary = 96});
//
// Output: {tokens, hidden}. Keeps nothing for the backward but the output's gradient, and draws the
// tokens from the data again when the weight gradient needs them.
//
// Positions are a table that learns (GPT, BERT), or the sines and cosines of Vaswani et al. 2017,
// which are no parameters: a pass computes those that it needs. With a table of token types (BERT)
// all tokens are of type 0: a sample is one segment.
#ifndef PIPELAB_MODELS_SPECS_GPT_EMBEDDING_SPEC_H_
#define PIPELAB_MODELS_SPECS_GPT_EMBEDDING_SPEC_H_

#include <cstdint>
#include <string>

#include "models/graph/layer_spec.h"

namespace pipelab {

inline constexpr char kGptEmbedding[] = "gpt_embedding";

enum class Positions : uint8_t { kLearned, kSinusoidal, kNone };

struct GptEmbeddingSizes {
  std::string name;
  std::string field = kTokens;  // of the data: ids
  Positions positions = Positions::kLearned;
  int64_t tokens = 0, hidden = 0, vocabulary = 0;
  int64_t types = 0;     // of tokens, with learned positions; 0: none
  double stddev = 0.02;  // of the tables
  std::string tie;       // of the token table; empty: not tied
};

// Places in LayerSpec::parameters and Layer::parameters_.
struct GptEmbeddingParameter {
  enum { kTable, kPositions, kTypes };  // [V, C], [T, C] where learned, [types, C]
};

LayerSpec GptEmbeddingSpec(const GptEmbeddingSizes& sizes);

}  // namespace pipelab

#endif  // PIPELAB_MODELS_SPECS_GPT_EMBEDDING_SPEC_H_
