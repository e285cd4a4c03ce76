// What all attention kernels share.
//
// For .cu.cc files.
#ifndef PIPELAB_KERNELS_CUDA_ATTENTION_PARTS_H_
#define PIPELAB_KERNELS_CUDA_ATTENTION_PARTS_H_

#include <cstdint>

#include "kernels/cuda/functions.h"
#include "kernels/cuda/launch.h"

namespace pipelab {
namespace gpu {

// What a block may have on every GPU since sm_80.
inline constexpr int64_t kMostSharedFloats = 96 * 1024 / 4;

// A tile of wider heads and its sums are more than registers and shared memory hold.
inline constexpr int64_t kMostTileProductHeadSize = 128;

// attention_bf16.cu.cc and attention_bf16_gradient.cu.cc: Attention and AttentionGradient of heads
// up to that width. delta: [sample, head, query], dout . out.
void AttentionByTileProducts(Queue& queue, const AttentionNumbers& call, const BFloat16* q,
                             const BFloat16* kv, BFloat16* out, float* lse);
void AttentionGradientByTileProducts(Queue& queue, const AttentionNumbers& call,
                                     const BFloat16* dout, const BFloat16* q, const BFloat16* kv,
                                     const float* lse, const float* delta, BFloat16* dq,
                                     BFloat16* dkv);

// Whether the kernels by tile products take the call: whose values are as wide as its keys.
inline bool TakesTileProducts(const AttentionNumbers& c) {
  return c.size <= kMostTileProductHeadSize && c.value_size == c.size;
}

// Keys [FirstKeyOf, KeysOf) are those that query `query` of the sample sees.
PIPELAB_DEVICE inline int64_t FirstKeyOf(const AttentionNumbers& c, int64_t query) {
  const int64_t first = c.first_query + query + 1 - c.window;
  return c.window == 0 || first < 0 ? 0 : first;
}
PIPELAB_DEVICE inline int64_t KeysOf(const AttentionNumbers& c, int64_t sample, int64_t query) {
  if (c.causal) {
    const int64_t own = c.first_query + query + 1;
    return own < c.keys ? own : c.keys;
  }
  return c.key_lengths == nullptr ? c.keys : c.key_lengths[sample];
}
PIPELAB_DEVICE inline bool Sees(const AttentionNumbers& c, int64_t sample, int64_t query,
                                int64_t key) {
  return FirstKeyOf(c, query) <= key && key < KeysOf(c, sample, query);
}
// Keys whose gradients a call touches: all where they are written; else those that queries read.
inline int64_t KeysOfGradient(const AttentionNumbers& c) {
  const int64_t read = c.first_query + c.queries;
  return c.writes_all_keys || !c.causal || read > c.keys ? c.keys : read;
}
// Whether one of the queries [first, last) sees one of the keys [first_key, end_key).
PIPELAB_DEVICE inline bool SeesSome(const AttentionNumbers& c, int64_t sample, int64_t first,
                                    int64_t last, int64_t first_key, int64_t end_key) {
  return first_key < KeysOf(c, sample, last - 1) && FirstKeyOf(c, first) < end_key;
}
// Where tiles of `rows` keys begin for queries from `query` on.
PIPELAB_DEVICE inline int64_t FirstTileOf(const AttentionNumbers& c, int64_t query, int64_t rows) {
  return FirstKeyOf(c, query) / rows * rows;
}

}  // namespace gpu
}  // namespace pipelab

#endif  // PIPELAB_KERNELS_CUDA_ATTENTION_PARTS_H_
