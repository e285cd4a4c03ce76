// Attention in tiles, without the matrix of scores: the running largest score and sum of each query
// go with the output (FlashAttention: Dao et al. 2022). Gradients compute the probabilities of a
// tile again from the log-sum-exp. Semantics: kernels/reference/attention.cc.
//
// A block has a tile of queries, or of keys in the gradient of keys and values, and goes over the
// tiles of the other side in one order, so results do not depend on how the queries are sliced
// where slices begin at whole tiles (of bfloat16, the gradients of keys and values are rounded
// between slices). Everything lies in shared memory, rows one float apart from the banks of the
// next. Arithmetic is in float32; bfloat16 numbers come here only where heads are wider than the
// kernels take that use tensor cores (attention_tiles.h), or values are of another width than keys.
#include <cmath>
#include <type_traits>

#include "kernels/cuda/attention_parts.h"
#include "kernels/cuda/functions.h"
#include "kernels/cuda/launch.h"

namespace pipelab {
namespace gpu {
namespace {

// Rows of a tile, a divisor of kAttentionBlockRows: as many as there is room for `arrays` tiles of.
int64_t TileRows(int64_t size, int64_t arrays) {
  for (int64_t rows = 32; rows > 1; rows /= 2) {
    if (arrays * rows * (size + 1) + 2 * rows * (rows + 1) + 4 * rows <= kMostSharedFloats)
      return rows;
  }
  return 1;
}

struct Tile {
  int64_t sample, head, first;  // its first row
};

PIPELAB_DEVICE inline Tile TileOf(int64_t block, int64_t tiles, int64_t heads, int64_t rows) {
  return {block / tiles / heads, block / tiles % heads, block % tiles * rows};
}

// Rows [first, first + rows) of one head to shared memory, zeros from `end` on.
template <class T>
PIPELAB_DEVICE inline void Load(const Block& block, const T* from, int64_t row_size, int64_t first,
                                int64_t end, int64_t rows, int64_t size, int64_t pitch, float* to) {
  block.ForEach(rows * size, [&](int64_t at) {
    const int64_t r = at / size, d = at % size;
    to[r * pitch + d] =
        first + r < end ? static_cast<float>(from[(first + r) * row_size + d]) : 0.0f;
  });
}

template <class T>
PIPELAB_DEVICE inline float Dot(const T* a, const T* b, int64_t n) {
  float sum = 0.0f;
  for (int64_t i = 0; i < n; ++i) sum += a[i] * b[i];
  return sum;
}

// From one row of a tile in shared memory to the next.
inline int64_t PitchOf(const AttentionNumbers& c) {
  return (c.size < c.value_size ? c.value_size : c.size) + 1;
}

// Takes one tile of keys into the outputs: scores, new largest ones, probabilities, sums.
struct ForwardTile {
  float *q, *o, *k, *v, *scores, *most, *sum, *fade;
  int64_t rows, size, pitch;  // of values

  PIPELAB_DEVICE void Take(const Block& block) const {
    const int64_t own_pitch = pitch, score_pitch = rows + 1, own_rows = rows, own_size = size;
    const ForwardTile& t = *this;
    block.ForEach(own_rows, [&](int64_t r) {
      float largest = t.most[r];
      for (int64_t j = 0; j < own_rows; ++j) {
        largest = fmaxf(largest, t.scores[r * score_pitch + j]);
      }
      t.fade[r] = t.most[r] == -INFINITY ? 0.0f : expf(t.most[r] - largest);
      t.most[r] = largest;
    });
    block.ForEach(own_rows * own_rows, [&](int64_t at) {
      const int64_t r = at / own_rows, place = r * score_pitch + at % own_rows;
      // A row past the last query sees nothing at all.
      t.scores[place] = t.most[r] == -INFINITY ? 0.0f : expf(t.scores[place] - t.most[r]);
    });
    block.ForEach(own_rows, [&](int64_t r) {
      float added = 0.0f;
      for (int64_t j = 0; j < own_rows; ++j) added += t.scores[r * score_pitch + j];
      t.sum[r] = t.sum[r] * t.fade[r] + added;
    });
    block.ForEach(own_rows * own_size, [&](int64_t at) {
      const int64_t r = at / own_size, d = at % own_size;
      float added = 0.0f;
      for (int64_t j = 0; j < own_rows; ++j) {
        added += t.scores[r * score_pitch + j] * t.v[j * own_pitch + d];
      }
      t.o[r * own_pitch + d] = t.o[r * own_pitch + d] * t.fade[r] + added;
    });
  }
};

// delta[sample, head, query] = dout . out, in sums of eight columns: so threads read close by.
template <class T>
void Deltas(Queue& queue, const AttentionNumbers& call, const T* dout, const T* out, float* delta) {
  constexpr int64_t kColumns = 8, kMostParts = 512;
  const AttentionNumbers c = call;
  const int64_t parts = (c.value_size + kColumns - 1) / kColumns;                     // of a head
  const int64_t heads = kMostParts / parts < c.heads ? kMostParts / parts : c.heads;  // of a block
  const int64_t groups = (c.heads + heads - 1) / heads;
  ForEachBlock(queue, "AttentionDeltas", c.samples * c.queries * groups, heads * parts,
               [=] PIPELAB_DEVICE(Block & block, int64_t b) {
                 const int64_t row = b / groups, first = b % groups * heads;
                 const int64_t count = c.heads - first < heads ? c.heads - first : heads;
                 float* const sums = block.shared();
                 block.ForEach(count * parts, [&](int64_t at) {
                   const int64_t column = at % parts * kColumns;
                   const int64_t columns =
                       c.value_size - column < kColumns ? c.value_size - column : kColumns;
                   const int64_t place =
                       (row * c.heads + first + at / parts) * c.value_size + column;
                   sums[at] = Dot(dout + place, out + place, columns);
                 });
                 block.ForEach(count, [&](int64_t h) {
                   float sum = 0.0f;
                   for (int64_t i = 0; i < parts; ++i) sum += sums[h * parts + i];
                   const int64_t sample = row / c.queries;
                   delta[(sample * c.heads + first + h) * c.queries + row % c.queries] = sum;
                 });
               });
}

template <class T>
void QueryGradient(Queue& queue, const AttentionNumbers& call, const T* dout, const T* q,
                   const T* kv, const float* lse, const float* delta, T* dq) {
  const AttentionNumbers c = call;
  const int64_t pitch = PitchOf(c), width = c.heads * c.value_size;
  const int64_t rows = TileRows(pitch - 1, 5), tiles = (c.queries + rows - 1) / rows;
  const float scale = 1.0f / sqrtf(static_cast<float>(c.size));
  ForEachBlock(
      queue, "AttentionQueryGradient", c.samples * c.heads * tiles,
      5 * rows * pitch + rows * (rows + 1), [=] PIPELAB_DEVICE(Block & block, int64_t b) {
        const Tile tile = TileOf(b, tiles, c.heads, rows);
        const int64_t column = tile.head * c.size, value_column = tile.head * c.value_size;
        float* const own_q = block.shared();
        float* const own_dout = own_q + rows * pitch;
        float* const own_dq = own_dout + rows * pitch;
        float* const k = own_dq + rows * pitch;
        float* const v = k + rows * pitch;
        float* const scores = v + rows * pitch;
        const T* const of_kv = kv + tile.sample * c.kv_sample + tile.head / c.group * c.kv_head;
        const int64_t row_of_lse = (tile.sample * c.heads + tile.head) * c.queries;
        Load(block, q + c.q_offset + tile.sample * c.q_sample + column, c.q_row, tile.first,
             c.queries, rows, c.size, pitch, own_q);
        Load(block, dout + tile.sample * c.queries * width + value_column, width, tile.first,
             c.queries, rows, c.value_size, pitch, own_dout);
        T* const to = dq + c.q_offset + tile.sample * c.q_sample + column;
        Load(block, to, c.q_row, tile.first, c.adds_queries ? c.queries : tile.first, rows, c.size,
             pitch, own_dq);
        const int64_t last = tile.first + rows < c.queries ? tile.first + rows : c.queries;
        const int64_t keys = KeysOf(c, tile.sample, last - 1);
        for (int64_t first_key = FirstTileOf(c, tile.first, rows); first_key < keys;
             first_key += rows) {
          Load(block, of_kv + c.k_offset, c.kv_row, first_key, keys, rows, c.size, pitch, k);
          Load(block, of_kv + c.v_offset, c.kv_row, first_key, keys, rows, c.value_size, pitch, v);
          block.ForEach(rows * rows, [&](int64_t at) {
            const int64_t r = at / rows, j = at % rows, query = tile.first + r;
            float dscore = 0.0f;
            if (query < c.queries && Sees(c, tile.sample, query, first_key + j)) {
              const float score = scale * Dot(own_q + r * pitch, k + j * pitch, c.size);
              const float p = expf(score - lse[row_of_lse + query]);
              const float dp = Dot(own_dout + r * pitch, v + j * pitch, c.value_size);
              dscore = scale * p * (dp - delta[row_of_lse + query]);
            }
            scores[r * (rows + 1) + j] = dscore;
          });
          block.ForEach(rows * c.size, [&](int64_t at) {
            const int64_t r = at / c.size, d = at % c.size;
            float sum = 0.0f;
            for (int64_t j = 0; j < rows; ++j) {
              sum += scores[r * (rows + 1) + j] * k[j * pitch + d];
            }
            own_dq[r * pitch + d] += sum;
          });
        }
        block.ForEach(rows * c.size, [&](int64_t at) {
          const int64_t r = at / c.size, d = at % c.size;
          if (tile.first + r < c.queries) {
            to[(tile.first + r) * c.q_row + d] = own_dq[r * pitch + d];
          }
        });
      });
}

// Over the tiles of queries from the last to the first, as the slices of a sequence come, and for
// each over the heads that share the keys: a later call goes on with the sum that an earlier one
// left.
template <class T>
void KeyValueGradient(Queue& queue, const AttentionNumbers& call, const T* dout, const T* q,
                      const T* kv, const float* lse, const float* delta, T* dkv) {
  const AttentionNumbers c = call;
  const int64_t keys = KeysOfGradient(c);
  const int64_t pitch = PitchOf(c), width = c.heads * c.value_size;
  const int64_t rows = TileRows(pitch - 1, 6), tiles = (keys + rows - 1) / rows;
  const int64_t query_tiles = (c.queries + rows - 1) / rows, score_pitch = rows + 1;
  const float scale = 1.0f / sqrtf(static_cast<float>(c.size));
  ForEachBlock(
      queue, "AttentionKeyValueGradient", c.samples * (c.heads / c.group) * tiles,
      6 * rows * pitch + 2 * rows * score_pitch, [=] PIPELAB_DEVICE(Block & block, int64_t b) {
        const Tile tile = TileOf(b, tiles, c.heads / c.group, rows);  // of a head of k and v
        const int64_t most_size = pitch - 1;
        float* const k = block.shared();
        float* const v = k + rows * pitch;
        float* const dk = v + rows * pitch;
        float* const dv = dk + rows * pitch;
        float* const own_q = dv + rows * pitch;
        float* const own_dout = own_q + rows * pitch;
        float* const p = own_dout + rows * pitch;
        float* const dscores = p + rows * score_pitch;
        const int64_t of_kv = tile.sample * c.kv_sample + tile.head * c.kv_head;
        Load(block, kv + of_kv + c.k_offset, c.kv_row, tile.first, keys, rows, c.size, pitch, k);
        Load(block, kv + of_kv + c.v_offset, c.kv_row, tile.first, keys, rows, c.value_size, pitch,
             v);
        const int64_t end = c.writes_all_keys ? tile.first : keys;  // nothing, or what is there
        Load(block, dkv + of_kv + c.k_offset, c.kv_row, tile.first, end, rows, c.size, pitch, dk);
        Load(block, dkv + of_kv + c.v_offset, c.kv_row, tile.first, end, rows, c.value_size, pitch,
             dv);
        for (int64_t turn = query_tiles * c.group - 1; turn >= 0; --turn) {
          const int64_t first = turn / c.group * rows;
          const int64_t head = tile.head * c.group + turn % c.group;
          const int64_t column = head * c.size, value_column = head * c.value_size;
          const int64_t row_of_lse = (tile.sample * c.heads + head) * c.queries;
          const int64_t last = first + rows < c.queries ? first + rows : c.queries;
          if (!SeesSome(c, tile.sample, first, last, tile.first, tile.first + rows)) continue;
          Load(block, q + c.q_offset + tile.sample * c.q_sample + column, c.q_row, first, c.queries,
               rows, c.size, pitch, own_q);
          Load(block, dout + tile.sample * c.queries * width + value_column, width, first,
               c.queries, rows, c.value_size, pitch, own_dout);
          block.ForEach(rows * rows, [&](int64_t at) {
            const int64_t r = at / rows, j = at % rows, query = first + r;
            float probability = 0.0f, dscore = 0.0f;
            if (query < c.queries && Sees(c, tile.sample, query, tile.first + j)) {
              const float score = scale * Dot(own_q + r * pitch, k + j * pitch, c.size);
              probability = expf(score - lse[row_of_lse + query]);
              const float dp = Dot(own_dout + r * pitch, v + j * pitch, c.value_size);
              dscore = scale * probability * (dp - delta[row_of_lse + query]);
            }
            p[r * score_pitch + j] = probability;
            dscores[r * score_pitch + j] = dscore;
          });
          block.ForEach(rows * most_size, [&](int64_t at) {
            const int64_t j = at / most_size, d = at % most_size;
            float key_sum = 0.0f, value_sum = 0.0f;
            for (int64_t r = 0; d < c.size && r < rows; ++r) {
              key_sum += dscores[r * score_pitch + j] * own_q[r * pitch + d];
            }
            for (int64_t r = 0; d < c.value_size && r < rows; ++r) {
              value_sum += p[r * score_pitch + j] * own_dout[r * pitch + d];
            }
            dk[j * pitch + d] += key_sum;
            dv[j * pitch + d] += value_sum;
          });
        }
        block.ForEach(rows * most_size, [&](int64_t at) {
          const int64_t j = at / most_size, d = at % most_size;
          if (tile.first + j >= keys) return;
          const int64_t place = of_kv + (tile.first + j) * c.kv_row + d;
          if (d < c.size) dkv[place + c.k_offset] = dk[j * pitch + d];
          if (d < c.value_size) dkv[place + c.v_offset] = dv[j * pitch + d];
        });
      });
}

}  // namespace

template <class T>
void Attention(Queue& queue, const AttentionNumbers& call, const T* q, const T* kv, T* out,
               float* lse) {
  if constexpr (std::is_same<T, BFloat16>::value) {
    if (TakesTileProducts(call)) {
      AttentionByTileProducts(queue, call, q, kv, out, lse);
      return;
    }
  }
  const AttentionNumbers c = call;
  const int64_t pitch = PitchOf(c), width = c.heads * c.value_size;
  const int64_t rows = TileRows(pitch - 1, 4), tiles = (c.queries + rows - 1) / rows;
  const float scale = 1.0f / sqrtf(static_cast<float>(c.size));
  ForEachBlock(
      queue, "Attention", c.samples * c.heads * tiles,
      4 * rows * pitch + rows * (rows + 1) + 3 * rows,
      [=] PIPELAB_DEVICE(Block & block, int64_t b) {
        const Tile tile = TileOf(b, tiles, c.heads, rows);
        const int64_t column = tile.head * c.size;
        ForwardTile t;
        t.rows = rows;
        t.size = c.value_size;
        t.pitch = pitch;
        t.q = block.shared();
        t.o = t.q + rows * pitch;
        t.k = t.o + rows * pitch;
        t.v = t.k + rows * pitch;
        t.scores = t.v + rows * pitch;
        t.most = t.scores + rows * (rows + 1);
        t.sum = t.most + rows;
        t.fade = t.sum + rows;
        const T* const of_kv = kv + tile.sample * c.kv_sample + tile.head / c.group * c.kv_head;
        Load(block, q + c.q_offset + tile.sample * c.q_sample + column, c.q_row, tile.first,
             c.queries, rows, c.size, pitch, t.q);
        block.ForEach(rows * pitch, [&](int64_t at) { t.o[at] = 0.0f; });
        block.ForEach(rows, [&](int64_t r) {
          t.most[r] = -INFINITY;
          t.sum[r] = 0.0f;
        });
        const int64_t last = tile.first + rows < c.queries ? tile.first + rows : c.queries;
        const int64_t keys = KeysOf(c, tile.sample, last - 1);
        for (int64_t first_key = FirstTileOf(c, tile.first, rows); first_key < keys;
             first_key += rows) {
          Load(block, of_kv + c.k_offset, c.kv_row, first_key, keys, rows, c.size, pitch, t.k);
          Load(block, of_kv + c.v_offset, c.kv_row, first_key, keys, rows, c.value_size, pitch,
               t.v);
          block.ForEach(rows * rows, [&](int64_t at) {
            const int64_t r = at / rows, j = at % rows, query = tile.first + r;
            const bool seen = query < c.queries && Sees(c, tile.sample, query, first_key + j);
            t.scores[r * (rows + 1) + j] =
                seen ? scale * Dot(t.q + r * pitch, t.k + j * pitch, c.size) : -INFINITY;
          });
          t.Take(block);
        }
        T* const to =
            out + (tile.sample * c.queries + tile.first) * width + tile.head * c.value_size;
        block.ForEach((last - tile.first) * c.value_size, [&](int64_t at) {
          const int64_t r = at / c.value_size, d = at % c.value_size;
          to[r * width + d] = t.o[r * pitch + d] / t.sum[r];
        });
        block.ForEach(last - tile.first, [&](int64_t r) {
          lse[(tile.sample * c.heads + tile.head) * c.queries + tile.first + r] =
              t.most[r] + logf(t.sum[r]);
        });
      });
}

template <class T>
void AttentionGradient(Queue& queue, const AttentionNumbers& call, const T* dout, const T* q,
                       const T* kv, const T* out, const float* lse, T* dq, T* dkv) {
  float* const delta =
      static_cast<float*>(queue.Scratch(call.samples * call.heads * call.queries * 4));
  if (delta == nullptr) return;
  Deltas(queue, call, dout, out, delta);
  if constexpr (std::is_same<T, BFloat16>::value) {
    if (TakesTileProducts(call)) {
      AttentionGradientByTileProducts(queue, call, dout, q, kv, lse, delta, dq, dkv);
      return;
    }
  }
  QueryGradient(queue, call, dout, q, kv, lse, delta, dq);
  KeyValueGradient(queue, call, dout, q, kv, lse, delta, dkv);
}

// Outputs by the log-sum-exps as they were, and then these.
template <class T>
void MergeAttention(Queue& queue, int64_t n, int64_t m, int64_t heads, int64_t size, const T* part,
                    const float* part_lse, T* out, float* lse) {
  ForEach(queue, "MergeOutputs", n * heads * size, [=] PIPELAB_DEVICE(int64_t i) {
    const int64_t query = i / size / heads, head = i / size % heads;
    const float other = part_lse[head * n + query], before = lse[head * m + query];
    const float most = fmaxf(other, before);
    const float keep = expf(before - most), add = expf(other - most);
    out[i] = (static_cast<float>(out[i]) * keep + static_cast<float>(part[i]) * add) / (keep + add);
  });
  ForEach(queue, "MergeSums", n * heads, [=] PIPELAB_DEVICE(int64_t i) {
    float* const at = lse + i / n * m + i % n;
    const float most = fmaxf(part_lse[i], *at);
    *at = most + logf(expf(part_lse[i] - most) + expf(*at - most));
  });
}

// The types of activations.
#define PIPELAB_MAKE(T)                                                                            \
  template void Attention(Queue&, const AttentionNumbers&, const T*, const T*, T*, float*);        \
  template void AttentionGradient(Queue&, const AttentionNumbers&, const T*, const T*, const T*,   \
                                  const T*, const float*, T*, T*);                                 \
  template void MergeAttention(Queue&, int64_t, int64_t, int64_t, int64_t, const T*, const float*, \
                               T*, float*);
PIPELAB_MAKE(float)
PIPELAB_MAKE(BFloat16)
#undef PIPELAB_MAKE

}  // namespace gpu
}  // namespace pipelab
