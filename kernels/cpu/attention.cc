#include "kernels/cpu/attention.h"

#include <algorithm>
#include <cmath>

#include "kernels/cpu/rows.h"

namespace pipelab {
namespace cpu {
namespace {

// One block of query rows of one (sample, head): offsets into q, k and v, out and lse.
struct Block {
  int64_t rows;             // query rows
  int64_t first_key, keys;  // that some row of the block sees, the first and how many
  int64_t causal_from;      // as in SoftmaxTile, from the first of these keys on
  bool first;               // of its head to write the gradients of keys
  int64_t q;                // first query
  int64_t head_kv, kv;      // of its keys: the sequence's first one, the block's
  int64_t out;              // first query row
  int64_t lse;
};

// Some of a block's keys, which are scored at once.
struct Tile {
  int64_t first, keys;  // from the block's first key on
  int64_t causal_from;  // from the tile's
  int64_t kv;
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
        b.causal_from = call.causal ? call.first_query + begin - b.first_key : call.keys;
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

template <class Body>
void ForEachTile(const AttentionCall& call, const Block& b, Body body) {
  const int64_t most = call.key_tile == 0 ? b.keys : call.key_tile;
  for (int64_t first = 0; first < b.keys; first += most) {
    body(Tile{first, std::min(most, b.keys - first), b.causal_from - first,
              b.kv + first * call.kv_row});
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
  float most[kAttentionBlockRows], sum[kAttentionBlockRows], fade[kAttentionBlockRows];
  ForEachBlock(call, [&](const Block& b) {
    std::fill_n(most, b.rows, -INFINITY);
    ForEachTile(call, b, [&](const Tile& t) {
      gemm->Run(kPlain, kTransposed, b.rows, t.keys, size, scale, in.q + b.q, call.q_row,
                in.k + t.kv, call.kv_row, 0, scores, t.keys);
      SoftmaxTile(scores, b.rows, t.keys, t.causal_from, call.window, most, sum, fade);
      if (t.first > 0) ScaleRows(fade, b.rows, value_size, width, out + b.out);
      gemm->Run(kPlain, kPlain, b.rows, value_size, t.keys, 1, scores, t.keys, in.v + t.kv,
                call.kv_row, t.first > 0 ? 1 : 0, out + b.out, width);
    });
    FinishSoftmax(b.rows, most, sum, lse + b.lse);
    ScaleRows(sum, b.rows, value_size, width, out + b.out);
  });
}

void AttentionBackward(const AttentionCall& call, const float* dout,
                       const AttentionData<const float>& in, const float* out, const float* lse,
                       Sgemm* gemm, float* scores, float* dscores,
                       const AttentionData<float>& gradient) {
  const int64_t size = call.head_size, value_size = call.value_size, width = call.out_width();
  const float scale = ScoreScale(call);
  ForEachBlock(call, [&](const Block& b) {
    const float beta = b.first ? 0 : 1;
    ForEachTile(call, b, [&](const Tile& t) {
      gemm->Run(kPlain, kTransposed, b.rows, t.keys, size, scale, in.q + b.q, call.q_row,
                in.k + t.kv, call.kv_row, 0, scores, t.keys);
      gemm->Run(kPlain, kTransposed, b.rows, t.keys, value_size, 1, dout + b.out, width,
                in.v + t.kv, call.kv_row, 0, dscores, t.keys);
      SoftmaxTileBackward(scores, dscores, b.rows, t.keys, t.causal_from, call.window, lse + b.lse,
                          dout + b.out, out + b.out, value_size, width);
      gemm->Run(kPlain, kPlain, b.rows, size, t.keys, scale, dscores, t.keys, in.k + t.kv,
                call.kv_row, t.first > 0 || call.adds_queries ? 1 : 0, gradient.q + b.q,
                call.q_row);
      gemm->Run(kTransposed, kPlain, t.keys, size, b.rows, scale, dscores, t.keys, in.q + b.q,
                call.q_row, beta, gradient.k + t.kv, call.kv_row);
      gemm->Run(kTransposed, kPlain, t.keys, value_size, b.rows, 1, scores, t.keys, dout + b.out,
                width, beta, gradient.v + t.kv, call.kv_row);
    });
    if (b.first) ClearUnseen(call, b, gradient);
  });
}

void MergeAttention(int64_t n, int64_t m, int64_t heads, int64_t size, const float* part,
                    const float* part_lse, float* out, float* lse) {
  for (int64_t i = 0; i < n; ++i) {
    for (int64_t h = 0; h < heads; ++h, part += size, out += size) {
      const float other = part_lse[h * n + i], before = lse[h * m + i];
      const float most = std::max(other, before);
      const float after = most + std::log(std::exp(other - most) + std::exp(before - most));
      const float keep = std::exp(before - after), add = std::exp(other - after);
      for (int64_t d = 0; d < size; ++d) out[d] = out[d] * keep + part[d] * add;
      lse[h * m + i] = after;
    }
  }
}

}  // namespace cpu
}  // namespace pipelab
