// Gradients of bfloat16 attention by tile products (attention_tiles.h): scores are computed again,
// probabilities and the scores' gradients are rounded to bfloat16 for the products that follow.
#include <cmath>

#include "kernels/cuda/attention_tiles.h"

namespace pipelab {
namespace gpu {
namespace {

constexpr int kScoreFloats = kTileRows * kScorePitch;
constexpr int kFactorFloats = kTileRows * kFactorPitch / 2;

template <class Head>
constexpr int kQueryGradientFloats =
    2 * Head::kFloats + 2 * kScoreFloats + kFactorFloats + 2 * kTileRows;
template <class Head>
constexpr int kKeyValueGradientFloats = kQueryGradientFloats<Head> + kFactorFloats;
static_assert(kKeyValueGradientFloats<HeadTiles<8>> <= kMostSharedFloats,
              "a block has no room for it");
static_assert(kTileRows * HeadTiles<8>::kSumPitch <= 2 * kScoreFloats, "no room for staged sums");

struct Call {
  AttentionNumbers c;
  const BFloat16 *dout, *q, *kv;
  const float *lse, *delta;
  bool aligned;
  float scale;

  // Rows of one head of a sample.
  PIPELAB_DEVICE HeadRows<const BFloat16> Queries(int64_t sample, int64_t head) const {
    return {q + c.q_offset + sample * c.q_sample + head * c.size, c.q_row};
  }
  PIPELAB_DEVICE HeadRows<const BFloat16> OutGradients(int64_t sample, int64_t head) const {
    const int64_t width = c.heads * c.size;
    return {dout + sample * c.queries * width + head * c.size, width};
  }
  PIPELAB_DEVICE HeadRows<const BFloat16> Keys(int64_t sample, int64_t head) const {
    return {kv + c.k_offset + sample * c.kv_sample + head / c.group * c.size, c.kv_row};
  }
  PIPELAB_DEVICE HeadRows<const BFloat16> Values(int64_t sample, int64_t head) const {
    return {kv + c.v_offset + sample * c.kv_sample + head / c.group * c.size, c.kv_row};
  }
  // lse and delta of the tile of queries at `first`, to shared memory.
  PIPELAB_DEVICE void LoadStatistics(const Block& block, int64_t sample, int64_t head,
                                     int64_t first, float* of_lse, float* of_delta) const {
    const Call& call = *this;
    const int64_t row = (sample * c.heads + head) * c.queries + first;
    const int64_t rows = c.queries - first;
    block.ForEach(kTileRows, [&](int64_t r) {
      of_lse[r] = r < rows ? call.lse[row + r] : 0.0f;
      of_delta[r] = r < rows ? call.delta[row + r] : 0.0f;
    });
  }
};

// What is there already of a gradient, as sums.
template <class Head>
PIPELAB_DEVICE inline void StageRows(const Block& block, HeadRows<BFloat16> from, int64_t rows,
                                     int64_t size, float* to) {
  block.ForEach(kTileRows * Head::kWidth, [&](int64_t at) {
    const int r = static_cast<int>(at) / Head::kWidth, d = static_cast<int>(at) % Head::kWidth;
    to[r * Head::kSumPitch + d] =
        r < rows && d < size ? static_cast<float>(from.first[r * from.row + d]) : 0.0f;
  });
}

// Sums that go on with what is there of a gradient, and what becomes of them; `room` is scratch.
template <class Head>
PIPELAB_DEVICE inline void LoadGradient(const Block& block, HeadRows<BFloat16> from, int64_t rows,
                                        int64_t size, float* room,
                                        OfWarps<typename Head::Sums>* sums) {
  StageRows<Head>(block, from, rows, size, room);
  block.ForEachWarp([&](int warp) { LoadSums<Head>(room, warp, &(*sums)[warp]); });
}

template <class Head>
void QueryGradient(Queue& queue, const Call& of, BFloat16* dq) {
  const Call call = of;
  const int64_t tiles = (call.c.queries + kTileRows - 1) / kTileRows;
  ForEachBlock(
      queue, "AttentionQueryGradient", call.c.samples * call.c.heads * tiles,
      kQueryGradientFloats<Head>, [=] PIPELAB_DEVICE(Block & block, int64_t b) {
        const AttentionNumbers& c = call.c;
        const int64_t first = (tiles - 1 - b % tiles) * kTileRows;
        const int64_t head = b / tiles % c.heads, sample = b / tiles / c.heads;
        const int64_t rows = c.queries - first < kTileRows ? c.queries - first : kTileRows;
        BFloat16* const k = reinterpret_cast<BFloat16*>(block.shared());
        BFloat16* const v = reinterpret_cast<BFloat16*>(block.shared() + Head::kFloats);
        float* const scores = block.shared() + 2 * Head::kFloats;
        float* const dprobabilities = scores + kScoreFloats;
        BFloat16* const dscores = reinterpret_cast<BFloat16*>(dprobabilities + kScoreFloats);
        float* const lse = dprobabilities + kScoreFloats + kFactorFloats;
        float* const delta = lse + kTileRows;
        OfWarps<typename Head::Factor> queries, douts;
        OfWarps<typename Head::Sums> sums;
        LoadTiles<Head>(block, call.Queries(sample, head), call.OutGradients(sample, head), first,
                        c.queries, c.size, call.aligned, k, v);
        block.ForEachWarp([&](int warp) {
          TakeRows<Head>(k, warp, &queries[warp]);
          TakeRows<Head>(v, warp, &douts[warp]);
        });
        BFloat16* const to = dq + (call.Queries(sample, head).first - call.q) + first * c.q_row;
        LoadGradient<Head>(block, {to, c.q_row}, c.adds_queries ? rows : 0, c.size, scores, &sums);
        call.LoadStatistics(block, sample, head, first, lse, delta);
        const int64_t keys = KeysOf(c, sample, first + rows - 1);
        for (int64_t first_key = FirstTileOf(c, first, kTileRows); first_key < keys;
             first_key += kTileRows) {
          LoadTiles<Head>(block, call.Keys(sample, head), call.Values(sample, head), first_key,
                          keys, c.size, call.aligned, k, v);
          block.ForEachWarp([&](int warp) {
            Scores<Head>(queries[warp], k, warp, rows, keys - first_key, scores);
            Scores<Head>(douts[warp], v, warp, rows, keys - first_key, dprobabilities);
          });
          block.ForEach(kTileRows * kTileRows, [&](int64_t at) {
            const int r = static_cast<int>(at) / kTileRows, j = static_cast<int>(at) % kTileRows;
            float dscore = 0.0f;
            if (r < rows && Sees(c, sample, first + r, first_key + j)) {
              const int place = r * kScorePitch + j;
              const float p = expf(call.scale * scores[place] - lse[r]);
              dscore = call.scale * p * (dprobabilities[place] - delta[r]);
            }
            dscores[r * kFactorPitch + j] = dscore;
          });
          block.ForEachWarp([&](int warp) {
            if (warp / kSides * kTile >= rows) return;
            AddProducts<Head>(dscores, k, warp, keys - first_key, &sums[warp]);
          });
        }
        block.ForEachWarp([&](int warp) { StoreSums<Head>(sums[warp], warp, scores); });
        WriteRows<Head>(block, scores, {to, c.q_row}, rows, c.size, [](int) { return 1.0f; });
      });
}

template <class Head>
PIPELAB_DEVICE inline void StoreGradient(const Block& block, OfWarps<typename Head::Sums>* sums,
                                         int64_t rows, int64_t size, float* room,
                                         HeadRows<BFloat16> to) {
  block.ForEachWarp([&](int warp) { StoreSums<Head>((*sums)[warp], warp, room); });
  WriteRows<Head>(block, room, to, rows, size, [](int) { return 1.0f; });
}

// A tile's scores with a row for each key, in shared memory, and what becomes of them.
struct KeyScores {
  const float *scores, *dprobabilities;  // of queries and keys; of their outputs' gradients
  const float *lse, *delta;              // of the queries
  BFloat16 *p, *dscores;                 // results
};

// The gradients of the scores of the keys [first_key, first_key + rows) with the queries [first,
// last) of a sample.
PIPELAB_DEVICE inline void ScoreGradients(const Block& block, const Call& call, int64_t sample,
                                          int64_t first_key, int64_t rows, int64_t first,
                                          int64_t last, const KeyScores& tile) {
  block.ForEach(kTileRows * kTileRows, [&](int64_t at) {
    const int r = static_cast<int>(at) / kTileRows, j = static_cast<int>(at) % kTileRows;
    float probability = 0.0f, dscore = 0.0f;
    if (r < rows && first + j < last && Sees(call.c, sample, first + j, first_key + r)) {
      const int place = r * kScorePitch + j;
      probability = expf(call.scale * tile.scores[place] - tile.lse[j]);
      dscore = call.scale * probability * (tile.dprobabilities[place] - tile.delta[j]);
    }
    tile.p[r * kFactorPitch + j] = probability;
    tile.dscores[r * kFactorPitch + j] = dscore;
  });
}

// Over the tiles of queries from the last to the first, as the slices of a sequence come, and for
// each over the heads that share the keys: a later call goes on with the sum that an earlier one
// left. Rows of scores are keys here.
template <class Head>
void KeyValueGradient(Queue& queue, const Call& of, BFloat16* dkv) {
  const Call call = of;
  const int64_t keys = KeysOfGradient(call.c);
  const int64_t tiles = (keys + kTileRows - 1) / kTileRows;
  const int64_t query_tiles = (call.c.queries + kTileRows - 1) / kTileRows;
  ForEachBlock(
      queue, "AttentionKeyValueGradient", call.c.samples * (call.c.heads / call.c.group) * tiles,
      kKeyValueGradientFloats<Head>, [=] PIPELAB_DEVICE(Block & block, int64_t b) {
        const AttentionNumbers& c = call.c;
        const int64_t first_key = b % tiles * kTileRows;
        const int64_t kv_heads = c.heads / c.group;
        const int64_t kv_head = b / tiles % kv_heads, sample = b / tiles / kv_heads;
        const int64_t rows = keys - first_key < kTileRows ? keys - first_key : kTileRows;
        BFloat16* const q = reinterpret_cast<BFloat16*>(block.shared());
        BFloat16* const dout = reinterpret_cast<BFloat16*>(block.shared() + Head::kFloats);
        float* const scores = block.shared() + 2 * Head::kFloats;
        float* const dprobabilities = scores + kScoreFloats;
        BFloat16* const p = reinterpret_cast<BFloat16*>(dprobabilities + kScoreFloats);
        BFloat16* const dscores = p + kTileRows * kFactorPitch;
        float* const lse = dprobabilities + kScoreFloats + 2 * kFactorFloats;
        float* const delta = lse + kTileRows;
        const int64_t of_kv = sample * c.kv_sample + first_key * c.kv_row + kv_head * c.size;
        const HeadRows<BFloat16> dk{dkv + c.k_offset + of_kv, c.kv_row};
        const HeadRows<BFloat16> dv{dkv + c.v_offset + of_kv, c.kv_row};
        OfWarps<typename Head::Factor> own_k, own_v;
        OfWarps<typename Head::Sums> dk_sums, dv_sums;
        LoadTiles<Head>(block, call.Keys(sample, kv_head * c.group),
                        call.Values(sample, kv_head * c.group), first_key, keys, c.size,
                        call.aligned, q, dout);
        block.ForEachWarp([&](int warp) {
          TakeRows<Head>(q, warp, &own_k[warp]);
          TakeRows<Head>(dout, warp, &own_v[warp]);
        });
        const int64_t there = c.writes_all_keys ? 0 : rows;
        LoadGradient<Head>(block, dk, there, c.size, scores, &dk_sums);
        LoadGradient<Head>(block, dv, there, c.size, scores, &dv_sums);
        for (int64_t turn = query_tiles * c.group - 1; turn >= 0; --turn) {
          const int64_t first = turn / c.group * kTileRows;
          const int64_t head = kv_head * c.group + turn % c.group;
          const int64_t last = first + kTileRows < c.queries ? first + kTileRows : c.queries;
          if (!SeesSome(c, sample, first, last, first_key, first_key + kTileRows)) continue;
          LoadTiles<Head>(block, call.Queries(sample, head), call.OutGradients(sample, head), first,
                          c.queries, c.size, call.aligned, q, dout);
          call.LoadStatistics(block, sample, head, first, lse, delta);
          block.ForEachWarp([&](int warp) {
            Scores<Head>(own_k[warp], q, warp, rows, last - first, scores);
            Scores<Head>(own_v[warp], dout, warp, rows, last - first, dprobabilities);
          });
          ScoreGradients(block, call, sample, first_key, rows, first, last,
                         {scores, dprobabilities, lse, delta, p, dscores});
          block.ForEachWarp([&](int warp) {
            if (warp / kSides * kTile >= rows) return;
            AddProducts<Head>(p, dout, warp, last - first, &dv_sums[warp]);
            AddProducts<Head>(dscores, q, warp, last - first, &dk_sums[warp]);
          });
        }
        StoreGradient<Head>(block, &dk_sums, rows, c.size, scores, dk);
        StoreGradient<Head>(block, &dv_sums, rows, c.size, scores, dv);
      });
}

}  // namespace

void AttentionGradientByTileProducts(Queue& queue, const AttentionNumbers& c, const BFloat16* dout,
                                     const BFloat16* q, const BFloat16* kv, const float* lse,
                                     const float* delta, BFloat16* dq, BFloat16* dkv) {
  const int64_t width = c.heads * c.size;
  const bool aligned = IsAligned(q, c.q_offset, c.q_row, c.q_sample, c.size) &&
                       IsAligned(kv, c.k_offset, c.kv_row, c.kv_sample, c.size) &&
                       IsAligned(kv, c.v_offset, c.kv_row, c.kv_sample, c.size) &&
                       IsAligned(dout, 0, width, 0, c.size);
  const Call call{c, dout, q, kv, lse, delta, aligned, 1.0f / sqrtf(static_cast<float>(c.size))};
  ByHeadTiles(c.size, [&](auto head) {
    QueryGradient<decltype(head)>(queue, call, dq);
    KeyValueGradient<decltype(head)>(queue, call, dkv);
  });
}

}  // namespace gpu
}  // namespace pipelab
