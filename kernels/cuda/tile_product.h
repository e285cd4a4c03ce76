// Products of 16 by 16 tiles, c += a b with bfloat16 factors and float32 sums: by tensor cores on a
// GPU (nvcuda::wmma, sm_80 and later), as loops on the host. A tile belongs to the 32 threads of a
// warp, which call each of its functions together.
//
//   OfWarps<TileSum> sums;                       // one for each warp of a block
//   block.ForEachWarp([&](int warp) {            // launch.h
//     LeftTile a;   a.Load(left, pitch);         // 16 rows of a, a pitch apart
//     RightTile b;  b.Load(right, pitch);        // 16 rows of b
//     sums[warp].Clear();
//     sums[warp].Add(a, b);
//     sums[warp].Store(to, to_pitch);
//   });
//
// Which thread holds which element is unknown, so what is no product goes through shared memory,
// where factors lie. Tiles begin at multiples of 32 bytes; pitches are multiples of 8 elements of
// bfloat16 and of 4 of float32. The host aborts elsewhere.
//
// For .cu.cc files.
#ifndef PIPELAB_KERNELS_CUDA_TILE_PRODUCT_H_
#define PIPELAB_KERNELS_CUDA_TILE_PRODUCT_H_

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <type_traits>

#include "kernels/cuda/launch.h"
#include "kernels/tensor/bfloat16.h"

#ifdef __CUDACC__
#include <cuda_bf16.h>
#include <mma.h>
#endif

namespace pipelab {
namespace gpu {

inline constexpr int kTile = 16;  // rows and columns

#ifdef __CUDACC__

// A T for each warp: threads of a block keep what is their warp's, in registers where they can.
template <class T>
class OfWarps {
 public:
  __device__ T& operator[](int) { return own_; }

 private:
  T own_;
};

// wmma's load_matrix_sync of bfloat16 reads a word at a time, from an address of any memory. Of an
// address in shared memory this is one instruction for all four words of a thread (ldmatrix).
#define PIPELAB_LOAD_TILE(factor, layout)                                       \
  asm volatile("wmma.load." factor ".sync.aligned." layout                      \
               ".m16n16k16.shared.bf16 {%0, %1, %2, %3}, [%4], %5;"             \
               : "=r"(words[0]), "=r"(words[1]), "=r"(words[2]), "=r"(words[3]) \
               : "r"(address), "r"(pitch)                                       \
               : "memory")

// A factor in shared memory, as it lies there: row by row, or, of the transposed one, column by
// column.
template <class Use, class Layout>
class FactorTile {
 public:
  __device__ void Load(const BFloat16* from, int pitch) {
    static_assert(sizeof(tile_) == 4 * sizeof(unsigned), "a tile has four words of each thread");
    unsigned* const words = reinterpret_cast<unsigned*>(&tile_);
    const auto address = static_cast<unsigned>(__cvta_generic_to_shared(from));
    if constexpr (std::is_same<Use, nvcuda::wmma::matrix_a>::value) {
      PIPELAB_LOAD_TILE("a", "row");
    } else if constexpr (std::is_same<Layout, nvcuda::wmma::row_major>::value) {
      PIPELAB_LOAD_TILE("b", "row");
    } else {
      PIPELAB_LOAD_TILE("b", "col");
    }
  }

 private:
  friend class TileSum;
  nvcuda::wmma::fragment<Use, kTile, kTile, kTile, __nv_bfloat16, Layout> tile_;
};
#undef PIPELAB_LOAD_TILE
using LeftTile = FactorTile<nvcuda::wmma::matrix_a, nvcuda::wmma::row_major>;
using RightTile = FactorTile<nvcuda::wmma::matrix_b, nvcuda::wmma::row_major>;
using RightTransposedTile = FactorTile<nvcuda::wmma::matrix_b, nvcuda::wmma::col_major>;

class TileSum {
 public:
  __device__ void Clear() { nvcuda::wmma::fill_fragment(tile_, 0.0f); }
  __device__ void Load(const float* from, int pitch) {
    nvcuda::wmma::load_matrix_sync(tile_, from, pitch, nvcuda::wmma::mem_row_major);
  }
  __device__ void Store(float* to, int pitch) const {
    nvcuda::wmma::store_matrix_sync(to, tile_, pitch, nvcuda::wmma::mem_row_major);
  }
  // += a b
  template <class Layout>
  __device__ void Add(const LeftTile& a, const FactorTile<nvcuda::wmma::matrix_b, Layout>& b) {
    nvcuda::wmma::mma_sync(tile_, a.tile_, b.tile_, tile_);
  }
  // Element by element: tiles of one kind are spread over the threads alike.
  __device__ void Multiply(const TileSum& by) {
    for (int i = 0; i < tile_.num_elements; ++i) tile_.x[i] *= by.tile_.x[i];
  }

 private:
  nvcuda::wmma::fragment<nvcuda::wmma::accumulator, kTile, kTile, kTile, float> tile_;
};

#else  // loops on the host

template <class T>
class OfWarps {
 public:
  T& operator[](int warp) { return all_[warp]; }

 private:
  T all_[kWarps];
};

inline void CheckTile(const void* at, int pitch, int pitch_step) {
  if (reinterpret_cast<uintptr_t>(at) % 32 == 0 && pitch >= kTile && pitch % pitch_step == 0) {
    return;
  }
  std::fprintf(stderr, "a tile at %p with a pitch of %d: tensor cores take none such\n", at, pitch);
  std::abort();
}

template <bool kRight, bool kTransposed>
class FactorTile {
 public:
  void Load(const BFloat16* from, int pitch) {
    CheckTile(from, pitch, 8);
    for (int i = 0; i < kTile; ++i) {
      for (int j = 0; j < kTile; ++j) {
        (kTransposed ? x_[j][i] : x_[i][j]) = from[i * pitch + j];
      }
    }
  }

 private:
  friend class TileSum;
  float x_[kTile][kTile];
};
using LeftTile = FactorTile<false, false>;
using RightTile = FactorTile<true, false>;
using RightTransposedTile = FactorTile<true, true>;

class TileSum {
 public:
  void Clear() { std::memset(x_, 0, sizeof(x_)); }
  void Load(const float* from, int pitch) {
    CheckTile(from, pitch, 4);
    for (int i = 0; i < kTile; ++i) std::memcpy(x_[i], from + i * pitch, sizeof(x_[i]));
  }
  void Store(float* to, int pitch) const {
    CheckTile(to, pitch, 4);
    for (int i = 0; i < kTile; ++i) std::memcpy(to + i * pitch, x_[i], sizeof(x_[i]));
  }
  template <bool kTransposed>
  void Add(const LeftTile& a, const FactorTile<true, kTransposed>& b) {
    for (int i = 0; i < kTile; ++i) {
      for (int l = 0; l < kTile; ++l) {
        for (int j = 0; j < kTile; ++j) x_[i][j] += a.x_[i][l] * b.x_[l][j];
      }
    }
  }
  void Multiply(const TileSum& by) {
    for (int i = 0; i < kTile; ++i) {
      for (int j = 0; j < kTile; ++j) x_[i][j] *= by.x_[i][j];
    }
  }

 private:
  float x_[kTile][kTile];
};

#endif

}  // namespace gpu
}  // namespace pipelab

#endif  // PIPELAB_KERNELS_CUDA_TILE_PRODUCT_H_
