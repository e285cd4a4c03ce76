// GPT (Radford et al. 2018, 2019) as a chain of layers: embedding, then attention and MLP for each
// block, then head.
//
//   PIPELAB_ASSIGN_OR_RETURN(ModelGraph g, BuildGpt({.layers = 4, .hidden = 128, .heads = 4,
//                                                    .tokens = 128, .vocabulary = 96}));
//   g.num_parameters();        // nothing is allocated: 52B parameters are as quick
//
// Norms are in front of each half block (GPT-2); the GELU is the tanh form. RMS norms, a gated
// feed-forward and products without biases are later models' (block_kinds.h). Starts as GPT-2:
// normal 0.02, the projections into the residual divided by sqrt(2 layers), zero biases.
#ifndef PIPELAB_MODELS_ZOO_GPT_H_
#define PIPELAB_MODELS_ZOO_GPT_H_

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "models/graph/layer_spec.h"
#include "models/specs/block_kinds.h"
#include "models/specs/gpt_embedding_spec.h"

namespace pipelab {

struct GptConfig {
  int64_t layers = 0;  // blocks; the graph has 2 layers + 2, and 4 of each further token
  int64_t hidden = 0, heads = 0;
  int64_t kv_heads = 0;   // of k and v, a divisor of heads; 0: heads
  int64_t head_size = 0;  // 0: hidden / heads
  int64_t tokens = 0;     // of a sample (sequence length)
  int64_t vocabulary = 0;
  double dropout = 0;            // of the residual branches, [0, 1)
  bool tied_embeddings = false;  // one table for input and output: the tie "embedding"
  int64_t mlp_ratio = 4;         // the MLP's inner width / hidden
  Positions positions = Positions::kLearned;
  int64_t feed_forward = 0;  // the MLP's inner width; 0: mlp_ratio * hidden
  FeedForwardKind feed_forward_kind = FeedForwardKind::kGelu;
  // Blocks behind the first `dense_blocks` have experts, of expert_feed_forward each (0:
  // feed_forward), where experts.experts > 0.
  ExpertChoice experts = {};
  int64_t expert_feed_forward = 0, dense_blocks = 0;
  std::vector<bool> expert_blocks = {};  // which of all blocks have experts; none: as above
  NormKind norm = NormKind::kLayer;
  // Norms behind half blocks, too (Gemma 2 and 3): a block has six layers then. Not with experts or
  // latent attention.
  bool post_norms = false;
  bool query_key_norms = false;  // of each head of q and k (Qwen3)
  // Multi-head latent attention where latent.rank > 0, with rotary positions; without biases,
  // kv_heads, head_size and norms of heads.
  LatentHeads latent = {};
  // Tokens that a token of block i sees: windows[i % their number], 0 for all up to its own; none:
  // all. {4096} is Mistral's, {128, 0} gpt-oss'. Not with latent attention.
  std::vector<int64_t> windows = {};
  // Keys whose scores exist at once: attention's scratch does not grow with the tokens. 0: all that
  // a block of 64 queries sees.
  int64_t key_tile = 0;
  bool sinks = false;             // a learned number of each head beside its scores (gpt-oss)
  double rotary_base = 0;         // above 0: rotary positions, beside those of `positions`
  double window_rotary_base = 0;  // of blocks with windows (Gemma 3); 0: the same
  Biases biases = Biases::kAll;   // of the blocks' products; a GELU has them
  bool output_bias = false;       // of the logits; not with tied embeddings
  // Heads for further tokens (specs/further_token_spec.h): each a block like the last one behind
  // the states of the one before, and the logits of the one table. Priced, not run. A stage that
  // has one has the loss, too.
  int64_t further_tokens = 0;

  bool HasExperts(int64_t block) const {
    if (experts.experts == 0) return false;
    return expert_blocks.empty() ? block >= dense_blocks : expert_blocks[block];
  }
  // Dense blocks in front of all others are `dense_blocks`.
  void SetExpertBlocks(const std::vector<bool>& have);

  int64_t feed_forward_width() const {
    return feed_forward == 0 ? mlp_ratio * hidden : feed_forward;
  }
};

// Llama (Touvron et al., arXiv 2302.13971): RMS norms, rotary positions alone, SwiGLU, no biases,
// two tables; no dropout. With experts Mixtral's (Jiang et al., arXiv 2401.04088).
GptConfig LlamaConfig(int64_t layers, int64_t hidden, int64_t heads, int64_t feed_forward,
                      int64_t tokens, int64_t vocabulary);

// InvalidArgument names the field as an option, and its value: "--heads=3: heads must divide
// --hidden=32".
absl::StatusOr<ModelGraph> BuildGpt(const GptConfig& config);

}  // namespace pipelab

#endif  // PIPELAB_MODELS_ZOO_GPT_H_
