// One call of attention, whichever way its tensors are packed: what backends compute from.
//
//   const AttentionCall call = CallOf(shape);           // either kind of shape
//   const float* k = kv + call.k_offset + sample * call.kv_sample + token * call.kv_row;
//
// Distances are in elements. Self attention has q, k and v in one tensor, cross attention in two.
#ifndef PIPELAB_KERNELS_ATTENTION_CALL_H_
#define PIPELAB_KERNELS_ATTENTION_CALL_H_

#include <cstdint>

#include "absl/types/span.h"
#include "kernels/attention_kernels.h"

namespace pipelab {

struct AttentionCall {
  int64_t samples, heads, head_size;
  int64_t group;          // heads of q that share one of k and v
  int64_t queries, keys;  // of each sample: rows of out; rows of k and v
  bool causal;
  int64_t first_query;   // the token of the first query, where causal
  bool writes_all_keys;  // the gradient of k and v is written, not added to
  int64_t scored_keys;   // that scratch is for: those that some query may see, or all
  absl::Span<const int32_t> key_lengths;
  // From the start of the tensor to the first query, key and value; between rows and samples.
  int64_t q_offset, q_row, q_sample;
  int64_t k_offset, v_offset, kv_row, kv_sample;

  int64_t width() const { return heads * head_size; }
  int64_t kv_width() const { return width() / group; }
  // The first keys, which query row `query` of `sample` sees.
  int64_t KeysOf(int64_t sample, int64_t query) const {
    if (causal) return first_query + query + 1;
    return key_lengths.empty() ? keys : key_lengths[sample];
  }
  // Floats of a block of scores: what attention_kernels.h promises.
  int64_t BlockFloats() const {
    const int64_t rows = queries < kAttentionBlockRows ? queries : kAttentionBlockRows;
    return rows * scored_keys;
  }
};

inline AttentionCall CallOf(const AttentionShape& s) {
  const int64_t width = s.heads * s.head_size, row = width + 2 * s.kv_width();
  const int64_t sample = s.tokens * row;
  return {s.samples,
          s.heads,
          s.head_size,
          width / s.kv_width(),
          s.num_queries(),
          s.tokens,
          s.causal,
          s.first_query,
          /*writes_all_keys=*/s.end_query() == s.tokens,
          s.num_keys(),
          s.key_lengths,
          s.first_query * row,
          row,
          sample,
          width,
          width + s.kv_width(),
          row,
          sample};
}

inline AttentionCall CallOf(const CrossAttentionShape& s) {
  const int64_t kv = s.kv_width();
  return {s.samples,
          s.heads,
          s.head_size,
          s.width() / kv,
          s.queries,
          s.keys,
          s.causal,
          s.first_query,
          /*writes_all_keys=*/!s.adds_keys,
          s.keys,
          s.key_lengths,
          0,
          s.row(),
          s.queries * s.row(),
          0,
          kv,
          2 * kv,
          s.keys * 2 * kv};
}

}  // namespace pipelab

#endif  // PIPELAB_KERNELS_ATTENTION_CALL_H_
