// Kernels over single numbers, which read and write bfloat16 numbers 16 bytes at a time.
//
//   Map(queue, "Relu", n, x, y, [=] PIPELAB_DEVICE(int64_t, float v) { return v < 0 ? 0 : v; });
//   Map(queue, "Add", n, a, b, y, [=] PIPELAB_DEVICE(int64_t, float v, float w) { return v + w; });
//
// y[i] = f(i, x[i]) or f(i, a[i], b[i]), of floats; y may be an input. A thread has eight numbers
// where one of the tensors is of bfloat16. Where an address is no multiple of 16, and at the end,
// it takes them one by one, with the same bits.
//
// For .cu.cc files.
#ifndef PIPELAB_KERNELS_CUDA_MAP_H_
#define PIPELAB_KERNELS_CUDA_MAP_H_

#include <cstdint>

#include "kernels/cuda/launch.h"
#include "kernels/tensor/bfloat16.h"

#ifdef __CUDACC__
#define PIPELAB_UNROLL _Pragma("unroll")  // the numbers stay in registers
#else
#define PIPELAB_UNROLL
#endif

namespace pipelab {
namespace gpu {

// Of one thread: loads and stores of it are of 16 bytes each.
template <class T, int kCount>
struct alignas(kCount == 1 ? sizeof(T) : 16) Numbers {
  T values[kCount];
};

template <class... T>
inline constexpr int kNumbersOfThread = ((sizeof(T) < sizeof(float)) || ...) ? 8 : 1;

inline bool IsWide(const void* address) { return reinterpret_cast<uintptr_t>(address) % 16 == 0; }

template <int kCount, class T>
PIPELAB_DEVICE inline Numbers<T, kCount> Load(const T* from, int64_t count, bool wide) {
  if (wide) return *reinterpret_cast<const Numbers<T, kCount>*>(from);
  Numbers<T, kCount> numbers{};
  PIPELAB_UNROLL
  for (int k = 0; k < kCount; ++k) {
    if (k < count) numbers.values[k] = from[k];
  }
  return numbers;
}

template <int kCount, class T>
PIPELAB_DEVICE inline void Store(const Numbers<T, kCount>& numbers, int64_t count, bool wide,
                                 T* to) {
  if (wide) {
    *reinterpret_cast<Numbers<T, kCount>*>(to) = numbers;
    return;
  }
  PIPELAB_UNROLL
  for (int k = 0; k < kCount; ++k) {
    if (k < count) to[k] = numbers.values[k];
  }
}

template <class X, class Y, class F>
void Map(Queue& queue, const char* kernel, int64_t n, const X* x, Y* y, const F& f) {
  constexpr int kCount = kNumbersOfThread<X, Y>;
  const bool aligned = IsWide(x) && IsWide(y);
  ForEach(queue, kernel, (n + kCount - 1) / kCount, [=] PIPELAB_DEVICE(int64_t thread) {
    const int64_t begin = thread * kCount, count = n - begin < kCount ? n - begin : kCount;
    const bool wide = aligned && count == kCount;
    const auto in = Load<kCount>(x + begin, count, wide);
    Numbers<Y, kCount> out{};
    PIPELAB_UNROLL
    for (int k = 0; k < kCount; ++k) out.values[k] = f(begin + k, in.values[k]);
    Store<kCount>(out, count, wide, y + begin);
  });
}

template <class A, class B, class Y, class F>
void Map(Queue& queue, const char* kernel, int64_t n, const A* a, const B* b, Y* y, const F& f) {
  constexpr int kCount = kNumbersOfThread<A, B, Y>;
  const bool aligned = IsWide(a) && IsWide(b) && IsWide(y);
  ForEach(queue, kernel, (n + kCount - 1) / kCount, [=] PIPELAB_DEVICE(int64_t thread) {
    const int64_t begin = thread * kCount, count = n - begin < kCount ? n - begin : kCount;
    const bool wide = aligned && count == kCount;
    const auto first = Load<kCount>(a + begin, count, wide);
    const auto second = Load<kCount>(b + begin, count, wide);
    Numbers<Y, kCount> out{};
    PIPELAB_UNROLL
    for (int k = 0; k < kCount; ++k) {
      out.values[k] = f(begin + k, first.values[k], second.values[k]);
    }
    Store<kCount>(out, count, wide, y + begin);
  });
}

}  // namespace gpu
}  // namespace pipelab

#endif  // PIPELAB_KERNELS_CUDA_MAP_H_
