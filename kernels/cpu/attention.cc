#include "kernels/cpu/attention.h"

#include <algorithm>
#include <cmath>

#include "kernels/cpu/rows.h"

namespace pipelab {
namespace cpu {
namespace {

// One block of query rows of one (sample, head): offsets into q, k and v, out and lse.
struct Block {
  int64_t rows;         // query rows
  int64_t first_key;    // the first key that some row of the block sees
  int64_t keys;         // and how many there are from it on
  int64_t causal_from;  // as in SoftmaxBlock
  bool first;           // of its head to write the gradients of keys
  int64_t q;            // first query
  int64_t head_kv, kv;  // of its keys: the sequence's first one, the block's
  int64_t out;          // first query row
  int64_t lse;
};

// Blocks go from the end of the queries to their start, the heads of a group in turn. The first one
// thus reaches the last key that the call reads; where that is the sequence's, key and value
// gradients are written by it, zeros where it sees nothing, and added to by the others.
template <class Body>
void ForEachBlock(const AttentionCall& call, Body body) {
  const int64_t queries = call.queries;
  const int64_t last = (queries - 1) / kAttentionBlockRows * kAttentionBlockRows;
  for (int64_t s = 0; s < call.samples; ++s) {
    for (int64_t shared = 0; shared < call.heads / call.group; ++shared) {
      for (int64_t begin = last; begin >= 0; begin -= kAttentionBlockRows) {
        Block b;
        b.rows = std::min(kAttentionBlockRows, queries - begin);
        b.first_key = call.FirstKeyOf(begin);
        b.keys = call.KeysOf(s, begin + b.rows - 1) - b.first_key;
        b.causal_from = call.causal ? call.first_query + begin - b.first_key : -1;
        b.head_kv = s * call.kv_sample + shared * call.kv_head;
        b.kv = b.head_kv + b.first_key * call.kv_row;
        for (int64_t i = 0; i < call.group; ++i) {
          const int64_t h = shared * call.group + i;
          b.first = begin == last && call.writes_all_keys && i == 0;
          b.q = s * call.q_sample + begin * call.q_row + h * call.head_size;
          b.out = (s * queries + begin) * call.out_width() + h * call.value_size;
          b.lse = (s * call.heads + h) * queries + begin;
          body(b);
        }
      }
    }
  }
}

float ScoreScale(const AttentionCall& call) {
  return static_cast<float>(1 / std::sqrt(static_cast<double>(call.head_size)));
}

// Keys in front of the window, and those that are padding, have no gradient from the block.
void ClearUnseen(const AttentionCall& call, const Block& b, const AttentionData<float>& gradient) {
  for (int64_t key = 0; key < call.keys; ++key) {
    if (key == b.first_key) key += b.keys;
    if (key >= call.keys) return;
    std::fill_n(gradient.k + b.head_kv + key * call.kv_row, call.head_size, 0.0f);
    std::fill_n(gradient.v + b.head_kv + key * call.kv_row, call.value_size, 0.0f);
  }
}

}  // namespace

void AttentionForward(const AttentionCall& call, const AttentionData<const float>& in, Sgemm* gemm,
                      float* scores, float* out, float* lse) {
  const int64_t size = call.head_size, value_size = call.value_size, width = call.out_width();
  const float scale = ScoreScale(call);
  float inverse_sum[kAttentionBlockRows];
  ForEachBlock(call, [&](const Block& b) {
    gemm->Run(kPlain, kTransposed, b.rows, b.keys, size, scale, in.q + b.q, call.q_row, in.k + b.kv,
              call.kv_row, 0, scores, b.keys);
    SoftmaxBlock(scores, b.rows, b.keys, b.causal_from, call.window, inverse_sum, lse + b.lse);
    gemm->Run(kPlain, kPlain, b.rows, value_size, b.keys, 1, scores, b.keys, in.v + b.kv,
              call.kv_row, 0, out + b.out, width);
    ScaleRows(inverse_sum, b.rows, value_size, width, out + b.out);
  });
}

void AttentionBackward(const AttentionCall& call, const float* dout,
                       const AttentionData<const float>& in, const float* out, const float* lse,
                       Sgemm* gemm, float* scores, float* dscores,
                       const AttentionData<float>& gradient) {
  const int64_t size = call.head_size, value_size = call.value_size, width = call.out_width();
  const float scale = ScoreScale(call);
  ForEachBlock(call, [&](const Block& b) {
    gemm->Run(kPlain, kTransposed, b.rows, b.keys, size, scale, in.q + b.q, call.q_row, in.k + b.kv,
              call.kv_row, 0, scores, b.keys);
    gemm->Run(kPlain, kTransposed, b.rows, b.keys, value_size, 1, dout + b.out, width, in.v + b.kv,
              call.kv_row, 0, dscores, b.keys);
    SoftmaxBlockBackward(scores, dscores, b.rows, b.keys, b.causal_from, call.window, lse + b.lse,
                         dout + b.out, out + b.out, value_size, width);
    const float beta = b.first ? 0 : 1;
    gemm->Run(kPlain, kPlain, b.rows, size, b.keys, scale, dscores, b.keys, in.k + b.kv,
              call.kv_row, 0, gradient.q + b.q, call.q_row);
    gemm->Run(kTransposed, kPlain, b.keys, size, b.rows, scale, dscores, b.keys, in.q + b.q,
              call.q_row, beta, gradient.k + b.kv, call.kv_row);
    gemm->Run(kTransposed, kPlain, b.keys, value_size, b.rows, 1, scores, b.keys, dout + b.out,
              width, beta, gradient.v + b.kv, call.kv_row);
    if (b.first) ClearUnseen(call, b, gradient);
  });
}

}  // namespace cpu
}  // namespace pipelab
