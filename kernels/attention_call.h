// One call of attention, whichever way its tensors are packed: what backends compute from.
//
//   const AttentionCall call = CallOf(shape);           // either kind of shape
//   const float* k = kv + call.k_offset + sample * call.kv_sample + token * call.kv_row;
//
// Distances are in elements. Self attention has q, k and v in one tensor, cross attention in two.
#ifndef PIPELAB_KERNELS_ATTENTION_CALL_H_
#define PIPELAB_KERNELS_ATTENTION_CALL_H_

#include <algorithm>
#include <cstdint>

#include "absl/types/span.h"
#include "kernels/attention_kernels.h"

namespace pipelab {

struct AttentionCall {
  int64_t samples, heads, head_size, value_size;
  int64_t group;          // heads of q that share one of k and v
  int64_t queries, keys;  // of each sample: rows of out; rows of k and v
  bool causal;
  int64_t first_query;   // the token of the first query, where causal
  int64_t window;        // tokens that a query sees, where causal; 0: all up to its own
  bool writes_all_keys;  // the gradient of k and v is written, not added to
  bool adds_queries;     // that of q is added to what is there
  int64_t key_tile;      // most keys of a block that are scored at once; 0: all
  int64_t scored_keys;   // that scratch is for: those that some query may see, or all
  absl::Span<const int32_t> key_lengths;
  // From the start of the tensor to the first query, key and value; between rows and samples.
  int64_t q_offset, q_row, q_sample;
  int64_t k_offset, v_offset, kv_row, kv_sample;
  int64_t kv_head;  // from one head of k, or of v, to the next

  int64_t width() const { return heads * head_size; }       // of q
  int64_t out_width() const { return heads * value_size; }  // of out
  int64_t kv_heads() const { return heads / group; }
  // Keys [FirstKeyOf, KeysOf) are those that query row `query` of `sample` sees.
  int64_t FirstKeyOf(int64_t query) const {
    return window == 0 ? 0 : std::max<int64_t>(0, first_query + query + 1 - window);
  }
  int64_t KeysOf(int64_t sample, int64_t query) const {
    if (causal) return std::min(keys, first_query + query + 1);
    return key_lengths.empty() ? keys : key_lengths[sample];
  }
  // Floats of a block of scores: what attention_kernels.h promises.
  int64_t BlockFloats() const {
    const int64_t rows = queries < kAttentionBlockRows ? queries : kAttentionBlockRows;
    const int64_t seen = window == 0 ? scored_keys : std::min(scored_keys, window + rows - 1);
    return rows * (key_tile == 0 ? seen : std::min(seen, key_tile));
  }
};

inline AttentionCall CallOf(const AttentionShape& s) {
  const int64_t width = s.heads * s.head_size, row = width + 2 * s.kv_width();
  const int64_t sample = s.tokens * row;
  return {s.samples,
          s.heads,
          s.head_size,
          s.head_size,
          width / s.kv_width(),
          s.num_queries(),
          s.tokens,
          s.causal,
          s.first_query,
          s.window,
          /*writes_all_keys=*/s.end_query() == s.tokens,
          /*adds_queries=*/false,
          s.key_tile,
          s.num_keys(),
          s.key_lengths,
          s.first_query * row,
          row,
          sample,
          width,
          width + s.kv_width(),
          row,
          sample,
          s.head_size};
}

inline AttentionCall CallOf(const CrossAttentionShape& s) {
  const int64_t value = s.value_size == 0 ? s.head_size : s.value_size;
  const bool by_head = s.value_size != 0;
  return {s.samples,
          s.heads,
          s.head_size,
          value,
          s.width() / s.kv_width(),
          s.queries,
          s.keys,
          s.causal,
          s.first_query,
          s.window,
          /*writes_all_keys=*/!s.adds_keys,
          s.adds_queries,
          s.key_tile,
          s.keys,
          s.key_lengths,
          0,
          s.row(),
          s.queries * s.row(),
          0,
          by_head ? s.head_size : s.kv_width(),
          s.kv_row(),
          s.keys * s.kv_row(),
          by_head ? s.head_size + value : s.head_size};
}

}  // namespace pipelab

#endif  // PIPELAB_KERNELS_ATTENTION_CALL_H_
