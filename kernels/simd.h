// How the loops of this folder become vector code in one portable binary, and the exponential they
// share.
//
//   PIPELAB_SIMD void Exp(const float* x, int64_t n, float* y) {
//   #pragma omp simd
//     for (int64_t i = 0; i < n; ++i) y[i] = FastExp(x[i]);
//   }
//
// A PIPELAB_SIMD function is compiled for AVX-512, for AVX2 and for any processor; the loader picks
// one. Bits may differ between processors, never between two runs on one: BUILD.bazel forbids the
// compiler to peel loops for alignment, so what is computed depends on the index alone.
#ifndef PIPELAB_KERNELS_SIMD_H_
#define PIPELAB_KERNELS_SIMD_H_

#include <cstdint>

// Sanitizers run before the loader's choice (an ifunc) can: one version there.
#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__) && defined(__OPTIMIZE__) && \
    !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
#define PIPELAB_SIMD __attribute__((target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default")))
#else
#define PIPELAB_SIMD
#endif

#define PIPELAB_INLINE __attribute__((always_inline)) inline

namespace pipelab {

// e^x. Relative error at most 2^-22 where the result is a normal number; below that it stops at the
// smallest normal number, above it at the largest power that float holds. NaN stays NaN.
PIPELAB_INLINE float FastExp(float x) {
  constexpr float kLowest = -87.33654f, kHighest = 88.37626f;  // 2^-126, 2^127.5
  x = x < kLowest ? kLowest : x;
  x = x > kHighest ? kHighest : x;
  // x = n ln 2 + r with |r| <= ln 2 / 2. Adding 1.5 * 2^23 leaves the rounded n in the low bits.
  constexpr float kRound = 12582912.0f;
  const float shifted = x * 1.44269504f + kRound;
  const float n = shifted - kRound;
  const float r = (x - n * 0.693359375f) + n * 2.12194440e-4f;  // ln 2 in two parts
  // The Taylor terms to r^7 / 7!; the next one is below 2^-27.
  float p = 1.0f / 5040;
  p = p * r + 1.0f / 720;
  p = p * r + 1.0f / 120;
  p = p * r + 1.0f / 24;
  p = p * r + 1.0f / 6;
  p = p * r + 0.5f;
  p = p * r + 1.0f;
  p = p * r + 1.0f;
  // 2^n, made of its exponent bits.
  const uint32_t bits = __builtin_bit_cast(uint32_t, shifted);
  const uint32_t exponent = (bits - __builtin_bit_cast(uint32_t, kRound) + 127u) << 23;
  return p * __builtin_bit_cast(float, exponent);
}

// Sixteen floats in one AVX-512 register, two AVX2 or four SSE ones. Loads need no alignment.
typedef float Float16 __attribute__((vector_size(64)));
typedef float UnalignedFloat16 __attribute__((vector_size(64), aligned(4)));

// The largest of n >= 1 values.
PIPELAB_INLINE float MaxOf(const float* x, int64_t n) {
  constexpr int kLanes = 16;
  float most = x[0];
  int64_t i = 0;
  if (n >= kLanes) {
    Float16 lanes = *reinterpret_cast<const UnalignedFloat16*>(x);
    for (i = kLanes; i + kLanes <= n; i += kLanes) {
      const Float16 next = *reinterpret_cast<const UnalignedFloat16*>(x + i);
      lanes = next > lanes ? next : lanes;
    }
    for (int l = 0; l < kLanes; ++l) most = lanes[l] > most ? lanes[l] : most;
  }
  for (; i < n; ++i) most = x[i] > most ? x[i] : most;
  return most;
}

}  // namespace pipelab

#endif  // PIPELAB_KERNELS_SIMD_H_
