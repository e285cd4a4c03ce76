// BERT (Devlin et al. 2019), trained to restore masked tokens: attention over all tokens, and a
// head of its own (dense, GELU, norm, logits with a bias).
//
//   BertConfig c;
//   c.layers = 48;  c.hidden = 1024;  c.heads = 16;  c.tokens = 512;  c.vocabulary = 30522;
//   PIPELAB_ASSIGN_OR_RETURN(ModelGraph g, BuildBert(c));
//
// Layers: embedding, attention and MLP for each block, norm, dense, head. Norms are in front of
// each half block with one at the end, as Megatron-LM has it; or behind each and the embedding, as
// in the paper: the same number of parameters. The sentence-order task is left out: hidden^2 + 3
// hidden + 2 for its head.
//
// Data: "tokens" with the masks, "targets" with kNoData where nothing is asked for, and where
// padded "tokens_length".
#ifndef PIPELAB_MODELS_ZOO_BERT_H_
#define PIPELAB_MODELS_ZOO_BERT_H_

#include <cstdint>

#include "absl/status/statusor.h"
#include "models/graph/layer_spec.h"

namespace pipelab {

inline constexpr char kTokensLength[] = "tokens_length";

struct BertConfig {
  int64_t layers = 0;  // blocks; the graph has 2 layers + 4, or 4 layers + 4 with norms behind
  int64_t hidden = 0, heads = 0;
  int64_t tokens = 0;  // of a sample (sequence length)
  int64_t vocabulary = 0;
  int64_t feed_forward = 0;      // 0: 4 hidden
  double dropout = 0;            // of the residual branches, [0, 1)
  bool padded = false;           // samples end with padding
  bool post_norms = false;       // norms are behind half blocks and the embedding
  int64_t token_types = 0;       // 2 in the paper: GptEmbeddingSizes::types
  bool exact_gelu = false;       // erf's, not the tanh form
  bool tied_embeddings = false;  // one table for input and output
  // The epsilon of the head's norm, above 0: the rows in front of it are sqrt(1e-5 / this) times as
  // large.
  double head_norm_epsilon = 1e-5;
};

// InvalidArgument names the field as an option, and its value.
absl::StatusOr<ModelGraph> BuildBert(const BertConfig& config);

}  // namespace pipelab

#endif  // PIPELAB_MODELS_ZOO_BERT_H_
