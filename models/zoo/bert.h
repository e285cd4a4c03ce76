// BERT (Devlin et al. 2019), trained to restore masked tokens: attention over all tokens, and a
// head of its own (dense, GELU, norm, logits with a bias).
//
//   BertConfig c;
//   c.layers = 48;  c.hidden = 1024;  c.heads = 16;  c.tokens = 512;  c.vocabulary = 30522;
//   PIPELAB_ASSIGN_OR_RETURN(ModelGraph g, BuildBert(c));
//
// Layers: embedding, attention and MLP for each block, norm, dense, head. Norms are in front of
// each half block with one at the end, as Megatron-LM has it, where the paper's come after each:
// the same number of parameters. Segments and the sentence-order task are left out: 2 hidden for
// the segments, hidden^2 + 3 hidden + 2 for the task's head.
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
  int64_t layers = 0;  // blocks; the graph has 2 layers + 4
  int64_t hidden = 0, heads = 0;
  int64_t tokens = 0;  // of a sample (sequence length)
  int64_t vocabulary = 0;
  int64_t feed_forward = 0;  // 0: 4 hidden
  double dropout = 0;        // of the residual branches, [0, 1)
  bool padded = false;       // samples end with padding
};

// InvalidArgument names the field as an option, and its value.
absl::StatusOr<ModelGraph> BuildBert(const BertConfig& config);

}  // namespace pipelab

#endif  // PIPELAB_MODELS_ZOO_BERT_H_
