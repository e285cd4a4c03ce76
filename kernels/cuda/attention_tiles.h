// What the kernels of bfloat16 attention share, whose products are tensor cores' (tile_product.h):
// a block has a tile of 64 queries, or keys, and goes over the tiles of 64 on the other side. Warps
// 2g and 2g + 1 have the rows [16 g, 16 g + 16) of its tile: of the scores each computes 32
// columns, of the results every other 16. Heads are padded with zeros to the next width that there
// is a kernel for.
//
// For .cu.cc files.
#ifndef PIPELAB_KERNELS_CUDA_ATTENTION_TILES_H_
#define PIPELAB_KERNELS_CUDA_ATTENTION_TILES_H_

#include <cstdint>
#include <type_traits>

#include "kernels/cuda/attention_parts.h"
#include "kernels/cuda/launch.h"
#include "kernels/cuda/tile_product.h"

namespace pipelab {
namespace gpu {

inline constexpr int kTileRows = 64;                     // kAttentionBlockRows
inline constexpr int kRowGroups = kTileRows / kTile;     // of 16 rows
inline constexpr int kSides = kWarps / kRowGroups;       // warps of a group
inline constexpr int kSideScores = kRowGroups / kSides;  // tiles of scores of a warp
inline constexpr int kScorePitch = kTileRows + 4;        // floats, off the banks of the row before
inline constexpr int kFactorPitch = kTileRows + 8;       // bfloat16

// The tiles of heads padded to so many tiles of columns.
template <int kColumns>
struct HeadTiles {
  static constexpr int kWidth = kColumns * kTile;
  static constexpr int kPitch = kWidth + 8;               // bfloat16
  static constexpr int kSumPitch = kWidth + 4;            // floats
  static constexpr int kFloats = kTileRows * kPitch / 2;  // of a tile in shared memory
  static constexpr int kOfSide = (kColumns + kSides - 1) / kSides;

  // What a warp keeps: its 16 rows as a factor, and its part of a result.
  struct Factor {
    LeftTile tiles[kColumns];
  };
  struct Sums {
    TileSum tiles[kOfSide];
  };
  PIPELAB_DEVICE static constexpr bool Has(int column) {
    return kColumns % kSides == 0 || column < kColumns;
  }
};

// Calls f with HeadTiles of the narrowest width that holds the head.
template <class F>
void ByHeadTiles(int64_t size, const F& f) {
  if (size <= 16) return f(HeadTiles<1>());
  if (size <= 32) return f(HeadTiles<2>());
  if (size <= 64) return f(HeadTiles<4>());
  if (size <= 96) return f(HeadTiles<6>());
  f(HeadTiles<8>());
}

// A head's rows in a tensor.
template <class T>
struct HeadRows {
  T* first;
  int64_t row;  // from one to the next
};

// 16 bytes, at addresses that are multiples of 16.
PIPELAB_DEVICE inline void CopySixteen(const BFloat16* from, BFloat16* to) {
#ifdef __CUDA_ARCH__
  *reinterpret_cast<uint4*>(to) = *reinterpret_cast<const uint4*>(from);
#else
  std::memcpy(to, from, 16);
#endif
}

// Whether rows may be read 16 bytes at a time: all of the heads' begin at multiples of that.
inline bool IsAligned(const BFloat16* first, int64_t offset, int64_t row, int64_t sample,
                      int64_t size) {
  return reinterpret_cast<uintptr_t>(first) % 16 == 0 && offset % 8 == 0 && row % 8 == 0 &&
         sample % 8 == 0 && size % 8 == 0;
}

// Rows [first, end) of two tensors, at most a tile, to shared memory: zeros below and beside them.
template <class Head>
PIPELAB_DEVICE inline void LoadTiles(const Block& block, HeadRows<const BFloat16> a,
                                     HeadRows<const BFloat16> b, int64_t first, int64_t end,
                                     int64_t size, bool aligned, BFloat16* to_a, BFloat16* to_b) {
  a.first += first * a.row;
  b.first += first * b.row;
  const int rows = static_cast<int>(end - first < kTileRows ? end - first : kTileRows);
  if (aligned) {
    constexpr int kPieces = Head::kWidth / 8;
    block.ForEach(kTileRows * kPieces, [&](int64_t at) {
      const int r = static_cast<int>(at) / kPieces, d = static_cast<int>(at) % kPieces * 8;
      const int place = r * Head::kPitch + d;
      if (r < rows && d < size) {
        CopySixteen(a.first + r * a.row + d, to_a + place);
        CopySixteen(b.first + r * b.row + d, to_b + place);
        return;
      }
      for (int i = 0; i < 8; ++i) to_a[place + i] = to_b[place + i] = BFloat16(0.0f);
    });
    return;
  }
  block.ForEach(kTileRows * Head::kWidth, [&](int64_t at) {
    const int r = static_cast<int>(at) / Head::kWidth, d = static_cast<int>(at) % Head::kWidth;
    const bool there = r < rows && d < size;
    to_a[r * Head::kPitch + d] = there ? a.first[r * a.row + d] : BFloat16(0.0f);
    to_b[r * Head::kPitch + d] = there ? b.first[r * b.row + d] : BFloat16(0.0f);
  });
}

// The warp's 16 rows of a tile in shared memory.
template <class Head>
PIPELAB_DEVICE inline void TakeRows(const BFloat16* tile, int warp, typename Head::Factor* factor) {
  PIPELAB_UNROLL
  for (int k = 0; k < Head::kWidth / kTile; ++k) {
    factor->tiles[k].Load(tile + warp / kSides * kTile * Head::kPitch + k * kTile, Head::kPitch);
  }
}

// scores = a b^T, for the warp's rows and columns; of neither more than there are is computed,
// rounded up to whole tiles.
template <class Head>
PIPELAB_DEVICE inline void Scores(const typename Head::Factor& a, const BFloat16* b, int warp,
                                  int64_t rows, int64_t columns, float* scores) {
  constexpr int kOwn = kSideScores * kTile;
  const int row = warp / kSides * kTile, column = warp % kSides * kOwn;
  if (row >= rows || column >= columns) return;
  TileSum sums[kSideScores];
  PIPELAB_UNROLL
  for (int n = 0; n < kSideScores; ++n) sums[n].Clear();
  PIPELAB_UNROLL
  for (int k = 0; k < Head::kWidth / kTile; ++k) {
    PIPELAB_UNROLL
    for (int n = 0; n < kSideScores; ++n) {
      RightTransposedTile right;
      right.Load(b + (column + n * kTile) * Head::kPitch + k * kTile, Head::kPitch);
      sums[n].Add(a.tiles[k], right);
    }
  }
  PIPELAB_UNROLL
  for (int n = 0; n < kSideScores; ++n) {
    sums[n].Store(scores + row * kScorePitch + column + n * kTile, kScorePitch);
  }
}

// sums += a b, for the warp's rows and columns: a [64, 64] with kFactorPitch, of which the first
// `inner` columns count, b a tile of a head's rows.
template <class Head>
PIPELAB_DEVICE inline void AddProducts(const BFloat16* a, const BFloat16* b, int warp,
                                       int64_t inner, typename Head::Sums* sums) {
  const int row = warp / kSides * kTile, side = warp % kSides;
  PIPELAB_UNROLL
  for (int k = 0; k < kRowGroups; ++k) {
    if (k * kTile >= inner) continue;
    LeftTile left;
    left.Load(a + row * kFactorPitch + k * kTile, kFactorPitch);
    PIPELAB_UNROLL
    for (int t = 0; t < Head::kOfSide; ++t) {
      const int column = t * kSides + side;
      if (!Head::Has(column)) continue;
      RightTile right;
      right.Load(b + k * kTile * Head::kPitch + column * kTile, Head::kPitch);
      sums->tiles[t].Add(left, right);
    }
  }
}

template <class Head>
PIPELAB_DEVICE inline void ClearSums(typename Head::Sums* sums) {
  PIPELAB_UNROLL
  for (int t = 0; t < Head::kOfSide; ++t) sums->tiles[t].Clear();
}

// The warp's sums to, or from, floats with a pitch of kSumPitch.
template <class Head>
PIPELAB_DEVICE inline void StoreSums(const typename Head::Sums& sums, int warp, float* to) {
  PIPELAB_UNROLL
  for (int t = 0; t < Head::kOfSide; ++t) {
    const int row = warp / kSides * kTile, column = t * kSides + warp % kSides;
    if (!Head::Has(column)) continue;
    sums.tiles[t].Store(to + row * Head::kSumPitch + column * kTile, Head::kSumPitch);
  }
}
template <class Head>
PIPELAB_DEVICE inline void LoadSums(const float* from, int warp, typename Head::Sums* sums) {
  PIPELAB_UNROLL
  for (int t = 0; t < Head::kOfSide; ++t) {
    const int row = warp / kSides * kTile, column = t * kSides + warp % kSides;
    if (!Head::Has(column)) continue;
    sums->tiles[t].Load(from + row * Head::kSumPitch + column * kTile, Head::kSumPitch);
  }
}

// `rows` rows of floats with a pitch of kSumPitch to a tensor, each times factor(row).
template <class Head, class Factor>
PIPELAB_DEVICE inline void WriteRows(const Block& block, const float* from, HeadRows<BFloat16> to,
                                     int64_t rows, int64_t size, const Factor& factor) {
  block.ForEach(rows * Head::kWidth, [&](int64_t at) {
    const int r = static_cast<int>(at) / Head::kWidth, d = static_cast<int>(at) % Head::kWidth;
    if (d < size) to.first[r * to.row + d] = factor(r) * from[r * Head::kSumPitch + d];
  });
}

}  // namespace gpu
}  // namespace pipelab

#endif  // PIPELAB_KERNELS_CUDA_ATTENTION_TILES_H_
