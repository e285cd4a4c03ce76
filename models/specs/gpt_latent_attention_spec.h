// Multi-head latent attention in the place of gpt_attention (DeepSeek-V2, arXiv 2405.04434, section
// 2.1; DeepSeek-V3, arXiv 2412.19437): y = x + dropout(attention(norm(x)) wo), causal, where keys
// and values of all heads come from one narrow row of each token. What it costs;
// gpt_latent_attention.cc runs it.
//
//   LayerSpec layer = GptLatentAttentionSpec({.name = "block0/attention", .input = 0,
//       .tokens = 4096, .hidden = 7168, .heads = 128, .latent = {1536, 512, 128, 64, 128}});
//
// With n = norm(x), RMS norms N and rotary positions R:
//   q   = N(n wqa) wqb, or n wq without a query rank; the first `rope` numbers of each head turn
//   kv  = N(n wkva) wkvb, of each head `nope` numbers of its key, then its value
//   k   = one R(n wkr) for all heads, then the head's own numbers
// Published weights have wkva and wkr as one tensor, and a head's turning numbers last: the same
// but for the order of columns.
//
// The forward keeps q [M, H (rope + nope)], keys and values [M, H (rope + nope + value)], the
// attention's output [M, H value], a number per row and head, the two latent rows in front of their
// norms, and the norms' statistics. Normed rows are computed again for weight gradients.
//
// A tensor-parallel group divides the heads. As in Megatron-LM each device computes the narrow
// products whole, with sequence parallelism of its own tokens, and the group gathers and sums
// latent rows instead of rows of the hidden size.
#ifndef PIPELAB_MODELS_SPECS_GPT_LATENT_ATTENTION_SPEC_H_
#define PIPELAB_MODELS_SPECS_GPT_LATENT_ATTENTION_SPEC_H_

#include <cstdint>
#include <string>

#include "models/graph/layer_spec.h"
#include "models/specs/block_kinds.h"  // IWYU pragma: export

namespace pipelab {

inline constexpr char kGptLatentAttention[] = "gpt_latent_attention";

struct GptLatentAttentionSizes {
  std::string name;
  int input = 0;  // index of the layer before
  int64_t tokens = 0, hidden = 0, heads = 0;
  LatentHeads latent;
  int64_t key_tile = 0;  // GptAttentionSizes::key_tile
  double rotary_base = 10000;
  NormKind norm = NormKind::kRms;  // in front of the branch
  double dropout = 0;
  double stddev = 0.02, projection_stddev = 0.02;  // of wo the latter
};

// In the order of LayerSpec::parameters, which lacks those that the layer has not: [C], [C],
// [C, query rank], [query rank], [query rank or C, H (rope + nope)], [C, rank], [C, rope], [rank],
// [rank, H (nope + value)], [H value, C].
struct GptLatentAttentionParameter {
  enum { kGamma, kBeta, kWqa, kQueryGamma, kWqb, kWkva, kWkr, kKeyGamma, kWkvb, kWo };
};

LayerSpec GptLatentAttentionSpec(const GptLatentAttentionSizes& sizes);
LatentHeads LatentHeadsOf(const LayerSpec& layer);

}  // namespace pipelab

#endif  // PIPELAB_MODELS_SPECS_GPT_LATENT_ATTENTION_SPEC_H_
