// Attention of a decoder to what an encoder made, the memory: y = x + dropout(attention(norm(x) wq
// + bq, memory wkv + bkv) wo + bo). What it costs; cross_attention.cc runs it.
//
//   LayerSpec layer = CrossAttentionSpec({.name = "decoder/block0/cross", .input = 5, .memory = 3,
//                                         .tokens = 48, .memory_tokens = 40, .hidden = 256,
//                                         .heads = 4});
//
// Output: {tokens, hidden}. M rows of x, N of the memory, W = heads * head_size. Of the forward it
// keeps q and the attention's output [M, W], k and v [N, 2W], a number a row and head, and the
// norm's mean and reciprocal deviation.
//
// Every query sees every key that is not padding; flops count padding as well.
#ifndef PIPELAB_MODELS_SPECS_CROSS_ATTENTION_SPEC_H_
#define PIPELAB_MODELS_SPECS_CROSS_ATTENTION_SPEC_H_

#include <cstdint>
#include <string>

#include "models/graph/layer_spec.h"

namespace pipelab {

inline constexpr char kCrossAttention[] = "cross_attention";

struct CrossAttentionSizes {
  std::string name;
  int input = 0, memory = 0;  // indices of earlier layers
  int64_t tokens = 0, memory_tokens = 0;
  int64_t hidden = 0, heads = 0;
  int64_t head_size = 0;  // 0: hidden / heads
  // The data field [1] that says how many rows of a sample's memory, from 1 on, are keys; the rest
  // is padding. Empty: all.
  std::string key_lengths = {};
  double dropout = 0;
  double stddev = 0.02, projection_stddev = 0.02;  // of wq and wkv, of wo
};

// Places in LayerSpec::parameters and Layer::parameters_.
struct CrossAttentionParameter {
  // [C], [C], [C, W], [W], [C, 2W], [2W], [W, C], [C]
  enum { kGamma, kBeta, kWq, kBq, kWkv, kBkv, kWo, kBo };
};

LayerSpec CrossAttentionSpec(const CrossAttentionSizes& sizes);

}  // namespace pipelab

#endif  // PIPELAB_MODELS_SPECS_CROSS_ATTENTION_SPEC_H_
