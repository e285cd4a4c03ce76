// The first half of a Transformer block: y = x + dropout(attention(norm(x) wqkv + bqkv) wo + bo),
// causal (GPT) or over all tokens (BERT, encoders). What it costs; gpt_attention.cc runs it.
//
//   LayerSpec layer = GptAttentionSpec({.name = "block0/attention", .input = 0, .tokens = 128,
//                                       .hidden = 256, .heads = 4});
//
// Output: {tokens, hidden}. W is heads * head_size, K kv_heads * head_size, Q = W + 2K: K < W where
// heads of q share keys (grouped queries). Of the forward it keeps q, k and v [M, Q], the
// attention's output [M, W], a number a row and head, and the norm's mean and reciprocal deviation.
// The norm's output is computed again for the weight gradient. With norms of q and k, in front of
// their rotary positions, it keeps both as they were too, [M, W + K], and a number a row and head
// of each; then it takes whole samples.
//
// With a window (Mistral; Gemma and gpt-oss in every other block) a token sees that many tokens,
// its own the last of them.
//
// Flops are of the products that the kernels compute: blocks of query rows times the keys that they
// can see (models/graph/attention_workspace.h), a little more than half of the square where causal,
// a little more than the window for each query; padding counts. The backward computes the scores
// again: five such products where the forward has two.
//
// Slices of the tokens (TeraPipe), causal only: room for q, k and v of the whole samples is taken
// by the first slice's forward, also by one that drops its activations, because the later slices
// read them; room for their gradient by the last slice's backward. A slice's flops grow with the
// tokens before it.
//
// Devices with parts of the tokens (TensorParallel::context) get the keys and values of all in each
// pass and keep their own alone: context_attention_spec.h.
#ifndef PIPELAB_MODELS_SPECS_GPT_ATTENTION_SPEC_H_
#define PIPELAB_MODELS_SPECS_GPT_ATTENTION_SPEC_H_

#include <cstdint>
#include <string>

#include "models/graph/layer_spec.h"
#include "models/specs/block_kinds.h"  // IWYU pragma: export

namespace pipelab {

inline constexpr char kGptAttention[] = "gpt_attention";

struct GptAttentionSizes {
  std::string name;
  int input = 0;  // index of the layer before
  int64_t tokens = 0, hidden = 0, heads = 0;
  int64_t kv_heads = 0;   // of k and v, a divisor of heads; 0: heads
  int64_t head_size = 0;  // 0: hidden / heads
  bool causal = true;
  int64_t window = 0;  // causal: tokens that a token sees; 0: all up to its own
  // Keys whose scores exist at once (kernels/attention_kernels.h); 0: all that some rows see.
  int64_t key_tile = 0;
  // Not causal: the data field [1] that says how many tokens of a sample, from 1 on, are keys; the
  // rest is padding. Empty: all.
  std::string key_lengths = {};
  double rotary_base = 0;  // rotary positions of q and k (kernels/attention_kernels.h); 0: none
  NormKind norm = NormKind::kLayer;
  bool query_key_norms = false;  // an RMS norm of each head of q and k, as in Qwen3
  bool sinks = false;            // a learned number of each head beside its scores (gpt-oss)
  bool residual = true;          // false: y = dropout(...), without x
  Biases biases = Biases::kAll;  // of the products
  double dropout = 0;
  double stddev = 0.02, projection_stddev = 0.02;  // of wqkv, of wo
};

// In the order of LayerSpec::parameters, which lacks those that the layer has not.
struct GptAttentionParameter {
  // [C], [C], [C, Q], [Q], [W, C], [C]; of a head's numbers for q, for k; a number each head
  enum { kGamma, kBeta, kWqkv, kBqkv, kWo, kBo, kQueryGamma, kKeyGamma, kSinks };
};

LayerSpec GptAttentionSpec(const GptAttentionSizes& sizes);

// Pairs of a query and a key whose score is computed, for one causal sequence and head and the
// queries [first, first + count), which see at most `window` keys each (0: all).
int64_t CausalAttentionPairs(int64_t first, int64_t count, int64_t window = 0);

}  // namespace pipelab

#endif  // PIPELAB_MODELS_SPECS_GPT_ATTENTION_SPEC_H_
