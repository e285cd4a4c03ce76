// Products of 16 by 16 and 16 by 8 tiles, c += a b, with bfloat16 factors and float32 sums, of
// which it is known which thread of a warp holds what (mma.sync m16n8k16; sm_80 and later): for
// factors that threads make in registers. Those in shared memory: tile_product.h.
//
//   OfWarps<OfLanes<Sums>> sums;                            // of any type, one for each thread
//   block.ForEachWarp([&](int warp) {
//     ForEachLane([&](int lane) { ... });                   // once for each thread of the warp
//     AddLaneProduct([&](int lane) { return sums[warp][lane].c; }, a, b);   // together
//   });
//
// The words of thread `lane`, with g = lane / 4 and j = lane % 4, each word being two neighbours in
// k:
//
//   a  4 words: rows g, g + 8, g, g + 8; k = 2 j, 2 j, 2 j + 8, 2 j + 8
//   b  2 words: column g; k = 2 j, 2 j + 8
//   c  4 floats: rows g, g, g + 8, g + 8; columns 2 j, 2 j + 1, 2 j, 2 j + 1
//
// For .cu.cc files.
#ifndef PIPELAB_KERNELS_CUDA_LANE_PRODUCT_H_
#define PIPELAB_KERNELS_CUDA_LANE_PRODUCT_H_

#include <cstdint>
#include <cstring>

#include "kernels/cuda/launch.h"

namespace pipelab {
namespace gpu {

#ifdef __CUDACC__

template <class T>
class OfLanes {
 public:
  __device__ T& operator[](int) { return own_; }

 private:
  T own_;
};

template <class F>
__device__ inline void ForEachLane(const F& f) {
  f(static_cast<int>(threadIdx.x) % kWarp);
}

// c, a and b return addresses of a thread's numbers.
template <class C, class A, class B>
__device__ inline void AddLaneProduct(const C& c, const A& a, const B& b) {
  const int lane = static_cast<int>(threadIdx.x) % kWarp;
  float* const sums = c(lane);
  const uint32_t *const left = a(lane), *const right = b(lane);
  asm("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 "
      "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
      : "+f"(sums[0]), "+f"(sums[1]), "+f"(sums[2]), "+f"(sums[3])
      : "r"(left[0]), "r"(left[1]), "r"(left[2]), "r"(left[3]), "r"(right[0]), "r"(right[1]));
}

#else  // loops on the host

template <class T>
class OfLanes {
 public:
  T& operator[](int lane) { return all_[lane]; }

 private:
  T all_[kWarp];
};

template <class F>
void ForEachLane(const F& f) {
  for (int lane = 0; lane < kWarp; ++lane) f(lane);
}

// The lower (0) or upper (1) number of a word.
inline float HalfOfWord(uint32_t word, int half) {
  const uint32_t bits = half == 0 ? word << 16 : word & 0xffff0000u;
  float value;
  std::memcpy(&value, &bits, sizeof(value));
  return value;
}

template <class C, class A, class B>
void AddLaneProduct(const C& c, const A& a, const B& b) {
  float left[16][16], right[16][8];
  for (int lane = 0; lane < kWarp; ++lane) {
    const int g = lane / 4, k = 2 * (lane % 4);
    const uint32_t *const of_a = a(lane), *const of_b = b(lane);
    for (int i = 0; i < 8; ++i) {
      left[g + i / 2 % 2 * 8][k + i / 4 * 8 + i % 2] = HalfOfWord(of_a[i / 2], i % 2);
      if (i < 4) right[k + i / 2 * 8 + i % 2][g] = HalfOfWord(of_b[i / 2], i % 2);
    }
  }
  for (int lane = 0; lane < kWarp; ++lane) {
    float* const sums = c(lane);
    for (int i = 0; i < 4; ++i) {
      const int row = lane / 4 + i / 2 * 8, column = 2 * (lane % 4) + i % 2;
      for (int k = 0; k < 16; ++k) sums[i] += left[row][k] * right[k][column];
    }
  }
}

#endif

}  // namespace gpu
}  // namespace pipelab

#endif  // PIPELAB_KERNELS_CUDA_LANE_PRODUCT_H_
