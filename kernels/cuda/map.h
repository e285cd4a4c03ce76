// Kernels over single numbers, which read and write bfloat16 numbers 16 bytes at a time; and the
// parts by which kernels over rows do so.
//
//   Map(queue, "Relu", n, x, y, [=] PIPELAB_DEVICE(int64_t, float v) { return v < 0 ? 0 : v; });
//   Map(queue, "Add", n, a, b, y, [=] PIPELAB_DEVICE(int64_t, float v, float w) { return v + w; });
//
// y[i] = f(i, x[i]) or f(i, a[i], b[i]), of floats; y may be an input. A thread has eight numbers
// where one of the tensors is of bfloat16. Where an address is no multiple of 16, and at the end,
// it reads and writes them one by one. What it computes is the same, and so are the bits.
//
// For .cu.cc files.
#ifndef PIPELAB_KERNELS_CUDA_MAP_H_
#define PIPELAB_KERNELS_CUDA_MAP_H_

#include <cstdint>

#include "kernels/cuda/launch.h"
#include "kernels/tensor/bfloat16.h"

namespace pipelab {
namespace gpu {

// Loads and stores of it are of 16 bytes each.
template <class T, int kCount>
struct alignas(kCount == 1 ? sizeof(T) : 16) Numbers {
  T values[kCount];
};

// How many of these types a thread takes at a time.
template <class... T>
inline constexpr int kNumbersOfThread = ((sizeof(T) < sizeof(float)) || ...) ? 8 : 1;

inline bool IsWide(const void* address) { return reinterpret_cast<uintptr_t>(address) % 16 == 0; }

// A part of n numbers: the next kCount from kCount * index on, or as many as there are.
struct Part {
  int64_t begin, count;
  bool wide;
};

template <int kCount>
constexpr int64_t PartsOf(int64_t n) {
  return (n + kCount - 1) / kCount;
}

template <int kCount>
PIPELAB_DEVICE inline Part PartAt(int64_t index, int64_t n, bool aligned) {
  const int64_t begin = index * kCount, count = n - begin < kCount ? n - begin : kCount;
  return {begin, count, aligned && count == kCount};
}

// Zeros behind the end.
template <int kCount, class T>
PIPELAB_DEVICE inline Numbers<T, kCount> Load(const T* from, const Part& part) {
  from += part.begin;
  if (part.wide) return *reinterpret_cast<const Numbers<T, kCount>*>(from);
  Numbers<T, kCount> numbers{};
  PIPELAB_UNROLL
  for (int k = 0; k < kCount; ++k) {
    if (k < part.count) numbers.values[k] = from[k];
  }
  return numbers;
}

template <int kCount, class T>
PIPELAB_DEVICE inline void Store(const Numbers<T, kCount>& numbers, const Part& part, T* to) {
  to += part.begin;
  if (part.wide) {
    *reinterpret_cast<Numbers<T, kCount>*>(to) = numbers;
    return;
  }
  PIPELAB_UNROLL
  for (int k = 0; k < kCount; ++k) {
    if (k < part.count) to[k] = numbers.values[k];
  }
}

// The sum of term(k) over the part's numbers, in their order.
template <int kCount, class Term>
PIPELAB_DEVICE inline float SumOfPart(const Part& part, const Term& term) {
  float sum = 0.0f;
  PIPELAB_UNROLL
  for (int k = 0; k < kCount; ++k) {
    if (k < part.count) sum += term(k);
  }
  return sum;
}

template <class X, class Y, class F>
void Map(Queue& queue, const char* kernel, int64_t n, const X* x, Y* y, const F& f) {
  constexpr int kCount = kNumbersOfThread<X, Y>;
  const bool aligned = IsWide(x) && IsWide(y);
  ForEach(queue, kernel, PartsOf<kCount>(n), [=] PIPELAB_DEVICE(int64_t thread) {
    const Part part = PartAt<kCount>(thread, n, aligned);
    const auto in = Load<kCount>(x, part);
    Numbers<Y, kCount> out{};
    PIPELAB_UNROLL
    for (int k = 0; k < kCount; ++k) out.values[k] = f(part.begin + k, in.values[k]);
    Store(out, part, y);
  });
}

template <class A, class B, class Y, class F>
void Map(Queue& queue, const char* kernel, int64_t n, const A* a, const B* b, Y* y, const F& f) {
  constexpr int kCount = kNumbersOfThread<A, B, Y>;
  const bool aligned = IsWide(a) && IsWide(b) && IsWide(y);
  ForEach(queue, kernel, PartsOf<kCount>(n), [=] PIPELAB_DEVICE(int64_t thread) {
    const Part part = PartAt<kCount>(thread, n, aligned);
    const auto first = Load<kCount>(a, part);
    const auto second = Load<kCount>(b, part);
    Numbers<Y, kCount> out{};
    PIPELAB_UNROLL
    for (int k = 0; k < kCount; ++k) {
      out.values[k] = f(part.begin + k, first.values[k], second.values[k]);
    }
    Store(out, part, y);
  });
}

}  // namespace gpu
}  // namespace pipelab

#endif  // PIPELAB_KERNELS_CUDA_MAP_H_
