#include "kernels/cpu/attention.h"

#include <algorithm>
#include <cmath>

#include "kernels/cpu/rows.h"

namespace pipelab {
namespace cpu {
namespace {

// One block of query rows of one (sample, head): offsets into qkv_M3C, out_MC and lse_SHT.
struct Block {
  int64_t rows;         // query rows
  int64_t keys;         // keys that some row of the block sees
  int64_t causal_from;  // as in SoftmaxBlock
  bool first;           // of its head to reach the sequence's last token
  int64_t q, k, v;      // first query, first key, first value
  int64_t out;          // first query row
  int64_t lse;
};

// Blocks go from the end of the queries to their start. The first one thus reaches every key that
// the call reads; where that is all of the sequence, key and value gradients are written by it and
// added to by the others.
template <class Body>
void ForEachBlock(const AttentionShape& shape, Body body) {
  const int64_t width = shape.heads * shape.head_size, tokens = shape.tokens;
  const int64_t queries = shape.num_queries();
  const int64_t last = (queries - 1) / kAttentionBlockRows * kAttentionBlockRows;
  for (int64_t s = 0; s < shape.samples; ++s) {
    for (int64_t h = 0; h < shape.heads; ++h) {
      const int64_t head_qkv = s * tokens * 3 * width + h * shape.head_size;
      for (int64_t begin = last; begin >= 0; begin -= kAttentionBlockRows) {
        const int64_t token = shape.first_query + begin;
        Block b;
        b.rows = std::min(kAttentionBlockRows, queries - begin);
        b.keys = shape.causal ? token + b.rows : tokens;
        b.causal_from = shape.causal ? token : -1;
        b.first = begin == last && shape.end_query() == tokens;
        b.q = head_qkv + token * 3 * width;
        b.k = head_qkv + width;
        b.v = head_qkv + 2 * width;
        b.out = (s * queries + begin) * width + h * shape.head_size;
        b.lse = (s * shape.heads + h) * queries + begin;
        body(b);
      }
    }
  }
}

float ScoreScale(const AttentionShape& shape) {
  return static_cast<float>(1 / std::sqrt(static_cast<double>(shape.head_size)));
}

}  // namespace

void AttentionForward(const AttentionShape& shape, const float* qkv, Sgemm* gemm, float* scores,
                      float* out, float* lse) {
  const int64_t size = shape.head_size, width = shape.heads * size, ld = 3 * width;
  const float scale = ScoreScale(shape);
  float inverse_sum[kAttentionBlockRows];
  ForEachBlock(shape, [&](const Block& b) {
    gemm->Run(kPlain, kTransposed, b.rows, b.keys, size, scale, qkv + b.q, ld, qkv + b.k, ld, 0,
              scores, b.keys);
    SoftmaxBlock(scores, b.rows, b.keys, b.causal_from, inverse_sum, lse + b.lse);
    gemm->Run(kPlain, kPlain, b.rows, size, b.keys, 1, scores, b.keys, qkv + b.v, ld, 0,
              out + b.out, width);
    ScaleRows(inverse_sum, b.rows, size, width, out + b.out);
  });
}

void AttentionBackward(const AttentionShape& shape, const float* dout, const float* qkv,
                       const float* out, const float* lse, Sgemm* gemm, float* scores,
                       float* dscores, float* dqkv) {
  const int64_t size = shape.head_size, width = shape.heads * size, ld = 3 * width;
  const float scale = ScoreScale(shape);
  ForEachBlock(shape, [&](const Block& b) {
    gemm->Run(kPlain, kTransposed, b.rows, b.keys, size, scale, qkv + b.q, ld, qkv + b.k, ld, 0,
              scores, b.keys);
    gemm->Run(kPlain, kTransposed, b.rows, b.keys, size, 1, dout + b.out, width, qkv + b.v, ld, 0,
              dscores, b.keys);
    SoftmaxBlockBackward(scores, dscores, b.rows, b.keys, b.causal_from, lse + b.lse, dout + b.out,
                         out + b.out, size, width);
    const float beta = b.first ? 0 : 1;
    gemm->Run(kPlain, kPlain, b.rows, size, b.keys, scale, dscores, b.keys, qkv + b.k, ld, 0,
              dqkv + b.q, ld);
    gemm->Run(kTransposed, kPlain, b.keys, size, b.rows, scale, dscores, b.keys, qkv + b.q, ld,
              beta, dqkv + b.k, ld);
    gemm->Run(kTransposed, kPlain, b.keys, size, b.rows, 1, scores, b.keys, dout + b.out, width,
              beta, dqkv + b.v, ld);
  });
}

}  // namespace cpu
}  // namespace pipelab
