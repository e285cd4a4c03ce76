// Attention of bfloat16 numbers by tile products (attention_tiles.h): scores and sums are float32,
// probabilities are rounded to bfloat16 for their product with the values, the sums that they are
// divided by have them unrounded.
#include <cmath>

#include "kernels/cuda/attention_tiles.h"

namespace pipelab {
namespace gpu {
namespace {

constexpr int kFadePitch = kTile + 4;         // floats
constexpr int kParts = kThreads / kTileRows;  // threads of a row

// Shared memory of a block. Each array is a multiple of 32 bytes.
template <class Head>
struct ForwardShared {
  static constexpr int kFloats = 2 * Head::kFloats + kTileRows * kScorePitch +
                                 kTileRows * kFactorPitch / 2 + kTileRows * kFadePitch +
                                 2 * kTileRows + 2 * kThreads;
  static_assert(kFloats <= kMostSharedFloats, "a block has no room for it");
  static_assert(kTileRows * Head::kSumPitch <= 2 * Head::kFloats, "no room for staged sums");

  PIPELAB_DEVICE explicit ForwardShared(float* at)
      : k(reinterpret_cast<BFloat16*>(at)),
        v(reinterpret_cast<BFloat16*>(at + Head::kFloats)),
        staged(at),
        scores(at + 2 * Head::kFloats),
        probabilities(reinterpret_cast<BFloat16*>(scores + kTileRows * kScorePitch)),
        fades(scores + kTileRows * kScorePitch + kTileRows * kFactorPitch / 2),
        most(fades + kTileRows * kFadePitch),
        parts(most + 2 * kTileRows),
        sums(parts + kThreads) {}

  BFloat16 *k, *v;
  float* staged;  // the result's sums in the place of k and v
  float* scores;
  BFloat16* probabilities;
  float* fades;         // of a row, 16 times: a tile to multiply sums by
  float* most;          // the largest score of a row so far, in two places by turns
  float *parts, *sums;  // of each thread's part of its row

  // Scores of one tile of keys, of which row r sees [hidden(r), seen(r)), to probabilities; `round`
  // counts the tiles.
  template <class Hidden, class Seen>
  PIPELAB_DEVICE void Softmax(const Block& block, float scale, int round, const Hidden& hidden,
                              const Seen& seen) const {
    const ForwardShared& t = *this;
    const float* const old_most = most + round % 2 * kTileRows;
    float* const new_most = most + (round + 1) % 2 * kTileRows;
    block.ForEach(kThreads, [&](int64_t at) {
      const int r = static_cast<int>(at) / kParts, keys = seen(r), before = hidden(r);
      float largest = -INFINITY;
      for (int j = static_cast<int>(at) % kParts; j < keys; j += kParts) {
        if (j >= before) largest = fmaxf(largest, t.scores[r * kScorePitch + j]);
      }
      t.parts[at] = scale * largest;
    });
    block.ForEach(kThreads, [&](int64_t at) {
      const int r = static_cast<int>(at) / kParts, part = static_cast<int>(at) % kParts;
      const int keys = seen(r), first = hidden(r);
      const float before = old_most[r];
      float largest = before, sum = 0.0f;
      for (int i = 0; i < kParts; ++i) largest = fmaxf(largest, t.parts[r * kParts + i]);
      for (int j = part; j < kTileRows; j += kParts) {
        const bool sees = first <= j && j < keys;
        const float p = sees ? expf(scale * t.scores[r * kScorePitch + j] - largest) : 0.0f;
        t.probabilities[r * kFactorPitch + j] = p;
        sum += p;
      }
      const float fade = before == -INFINITY ? 0.0f : expf(before - largest);
      t.sums[at] = t.sums[at] * fade + sum;
      for (int i = part; i < kTile; i += kParts) t.fades[r * kFadePitch + i] = fade;
      if (part == 0) new_most[r] = largest;
    });
  }
};

template <class Head>
void Forward(Queue& queue, const AttentionNumbers& call, const BFloat16* q, const BFloat16* kv,
             BFloat16* out, float* lse) {
  const AttentionNumbers c = call;
  const int64_t tiles = (c.queries + kTileRows - 1) / kTileRows, width = c.heads * c.size;
  const float scale = 1.0f / sqrtf(static_cast<float>(c.size));
  const bool aligned = IsAligned(q, c.q_offset, c.q_row, c.q_sample, c.size) &&
                       IsAligned(kv, c.k_offset, c.kv_row, c.kv_sample, c.size) &&
                       IsAligned(kv, c.v_offset, c.kv_row, c.kv_sample, c.size);
  ForEachBlock(
      queue, "Attention", c.samples * c.heads * tiles, ForwardShared<Head>::kFloats,
      [=] PIPELAB_DEVICE(Block & block, int64_t b) {
        const ForwardShared<Head> t(block.shared());
        // The last tile, which sees most keys, first.
        const int64_t first = (tiles - 1 - b % tiles) * kTileRows;
        const int64_t head = b / tiles % c.heads, sample = b / tiles / c.heads;
        const int64_t rows = c.queries - first < kTileRows ? c.queries - first : kTileRows;
        const int64_t column = head * c.size;
        const int64_t of_kv = sample * c.kv_sample + head / c.group * c.size;
        const HeadRows<const BFloat16> queries{q + c.q_offset + sample * c.q_sample + column,
                                               c.q_row};
        const HeadRows<const BFloat16> k{kv + of_kv + c.k_offset, c.kv_row};
        const HeadRows<const BFloat16> v{kv + of_kv + c.v_offset, c.kv_row};
        OfWarps<typename Head::Factor> factor;
        OfWarps<typename Head::Sums> sums;
        LoadTiles<Head>(block, queries, queries, first, c.queries, c.size, aligned, t.k, t.v);
        block.ForEachWarp([&](int warp) {
          TakeRows<Head>(t.k, warp, &factor[warp]);
          ClearSums<Head>(&sums[warp]);
        });
        block.ForEach(kThreads, [&](int64_t at) {
          t.sums[at] = 0.0f;
          if (at < kTileRows) t.most[at] = -INFINITY;
        });
        const int64_t keys = KeysOf(c, sample, first + rows - 1);
        int round = 0;
        for (int64_t first_key = FirstTileOf(c, first, kTileRows); first_key < keys;
             first_key += kTileRows, ++round) {
          LoadTiles<Head>(block, k, v, first_key, keys, c.size, aligned, t.k, t.v);
          block.ForEachWarp([&](int warp) {
            Scores<Head>(factor[warp], t.k, warp, rows, keys - first_key, t.scores);
          });
          const auto hidden = [&](int r) {
            const int64_t before = FirstKeyOf(c, first + r) - first_key;
            return static_cast<int>(before < kTileRows ? before : kTileRows);
          };
          t.Softmax(block, scale, round, hidden, [&](int r) {  // rows past the last see nothing
            const int64_t seen = r < rows ? KeysOf(c, sample, first + r) - first_key : 0;
            return static_cast<int>(seen < kTileRows ? seen : kTileRows);
          });
          block.ForEachWarp([&](int warp) {
            if (warp / kSides * kTile >= rows) return;
            TileSum fade;
            fade.Load(t.fades + warp / kSides * kTile * kFadePitch, kFadePitch);
            PIPELAB_UNROLL
            for (int i = 0; i < Head::kOfSide; ++i) sums[warp].tiles[i].Multiply(fade);
            AddProducts<Head>(t.probabilities, t.v, warp, keys - first_key, &sums[warp]);
          });
        }
        block.ForEachWarp([&](int warp) { StoreSums<Head>(sums[warp], warp, t.staged); });
        const auto sum_of = [&](int r) {
          float sum = 0.0f;
          for (int i = 0; i < kParts; ++i) sum += t.sums[r * kParts + i];
          return sum;
        };
        const HeadRows<BFloat16> to{out + (sample * c.queries + first) * width + column, width};
        WriteRows<Head>(block, t.staged, to, rows, c.size, [&](int r) { return 1.0f / sum_of(r); });
        block.ForEach(rows, [&](int64_t r) {
          lse[(sample * c.heads + head) * c.queries + first + r] =
              t.most[round % 2 * kTileRows + r] + logf(sum_of(static_cast<int>(r)));
        });
      });
}

}  // namespace

void AttentionByTileProducts(Queue& queue, const AttentionNumbers& call, const BFloat16* q,
                             const BFloat16* kv, BFloat16* out, float* lse) {
  ByHeadTiles(call.size, [&](auto head) { Forward<decltype(head)>(queue, call, q, kv, out, lse); });
}

}  // namespace gpu
}  // namespace pipelab
