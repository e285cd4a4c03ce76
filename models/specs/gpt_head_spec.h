// The output of a Transformer: final norm, logits, cross-entropy. Its output is the loss. What it
// costs; gpt_head.cc runs it.
//
//   LayerSpec layer = GptHeadSpec({.name = "head", .input = 8, .tokens = 128, .hidden = 256,
//                                  .vocabulary = 96});
//
// The table is [vocabulary, hidden], tied to the embedding's or not; with an output bias and no tie
// it is a weight [hidden, vocabulary] of its own. Of the forward it keeps the
// logits [M, vocabulary] and the norm's mean and reciprocal deviation; the gradient takes the
// logits' place.
#ifndef PIPELAB_MODELS_SPECS_GPT_HEAD_SPEC_H_
#define PIPELAB_MODELS_SPECS_GPT_HEAD_SPEC_H_

#include <cstdint>
#include <string>

#include "models/graph/layer_spec.h"
#include "models/specs/block_kinds.h"  // IWYU pragma: export

namespace pipelab {

inline constexpr char kGptHead[] = "gpt_head";
// The attribute of a head whose tied table has a bias (BERT).
inline constexpr char kTableBias[] = "table_bias";

struct GptHeadSizes {
  std::string name;
  int input = 0;  // index of the layer before
  int64_t tokens = 0, hidden = 0, vocabulary = 0;
  NormKind norm = NormKind::kLayer;
  double stddev = 0.02;
  std::string tie;           // of the table; empty: not tied
  bool output_bias = false;  // of the logits
  // The data may have rows without a target (kNoData): they have no loss.
  bool padded_targets = false;
};

// In the order of LayerSpec::parameters, which lacks those that the layer has not.
struct GptHeadParameter {
  // [C], [C], [V, C] or [C, V], [V]
  enum { kGamma, kBeta, kTable, kBias };
};

LayerSpec GptHeadSpec(const GptHeadSizes& sizes);

}  // namespace pipelab

#endif  // PIPELAB_MODELS_SPECS_GPT_HEAD_SPEC_H_
