// The layer before a head for further tokens (multi-token prediction, DeepSeek-V3, arXiv
// 2412.19437, section 2.2; Megatron-Core's transformer/multi_token_prediction.py): the norms of the
// last block's rows and of the next tokens' embeddings, side by side, times a matrix of twice the
// width.
//
//   LayerSpec layer = FurtherTokenSpec({.name = "head/further0/input", .input = 8, .tokens = 128,
//                                       .hidden = 256, .vocabulary = 96, .tie = "embedding"});
//
// Output: {tokens, hidden}. The token table is the embedding's, by the tie. It is priced and does
// not run. A group divides the table's words and the matrix's columns, which it gathers. Kept are
// the norms' inputs and outputs, of the tokens' side both.
#ifndef PIPELAB_MODELS_SPECS_FURTHER_TOKEN_SPEC_H_
#define PIPELAB_MODELS_SPECS_FURTHER_TOKEN_SPEC_H_

#include <cstdint>
#include <string>

#include "models/graph/layer_spec.h"
#include "models/specs/block_kinds.h"  // IWYU pragma: export

namespace pipelab {

inline constexpr char kFurtherToken[] = "further_token";
// How the names of all layers of such a head begin, before its number.
inline constexpr char kFurtherTokens[] = "head/further";
// The name under which messages say that these layers are priced and do not run.
inline constexpr char kFurtherHeads[] = "heads for further tokens";

struct FurtherTokenSizes {
  std::string name;
  int input = 0;  // index of the layer before
  int64_t tokens = 0, hidden = 0, vocabulary = 0;
  NormKind norm = NormKind::kLayer;
  double stddev = 0.02;
  std::string tie;  // of the token table
};

LayerSpec FurtherTokenSpec(const FurtherTokenSizes& sizes);

}  // namespace pipelab

#endif  // PIPELAB_MODELS_SPECS_FURTHER_TOKEN_SPEC_H_
