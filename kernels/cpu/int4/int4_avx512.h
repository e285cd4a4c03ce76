// What the kernels in AVX-512 share: a panel is two vectors of 16 columns, and their totals are
// float32. For int4_kernel.h's classes to inherit; internal to each file that includes it.
#ifndef PIPELAB_KERNELS_CPU_INT4_INT4_AVX512_H_
#define PIPELAB_KERNELS_CPU_INT4_INT4_AVX512_H_

#include <immintrin.h>

#include <cstdint>

#include "kernels/tensor/bfloat16.h"

namespace pipelab {
namespace cpu {
namespace {

struct Avx512Totals {
  using Vector = __m512;
  static constexpr int kVectors = 2, kMostRows = 8, kUnits = 1;

  static __m512 Scale(const BFloat16* scales) {
    const __m256i bits = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(scales));
    return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(bits), 16));
  }
  static void Store(__m512 total, float* y) { _mm512_storeu_ps(y, total); }
};

// With float32 sums of a span.
struct Avx512FloatSums : Avx512Totals {
  using Sum = __m512;

  static __m512 Begin(int64_t, int64_t) { return _mm512_setzero_ps(); }
  static __m512 Add(__m512 total, __m512 sum, __m512 scale, int64_t, int64_t) {
    return _mm512_fmadd_ps(sum, scale, total);
  }
};

}  // namespace
}  // namespace cpu
}  // namespace pipelab

#endif  // PIPELAB_KERNELS_CPU_INT4_INT4_AVX512_H_
