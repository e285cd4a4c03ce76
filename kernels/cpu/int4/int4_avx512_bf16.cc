// Products of bfloat16 pairs in AVX-512. A lookup of 32 numbers of 16 bits takes the low 5 bits of
// each half lane; the code book stands in it twice, so the fifth bit does not matter.
#include "kernels/cpu/int4/int4_call.h"

#if defined(__AVX512BF16__)
#include <immintrin.h>

#include "kernels/cpu/int4/int4_avx512.h"
#include "kernels/cpu/int4/int4_kernel.h"

namespace pipelab {
namespace cpu {
namespace {

class Avx512Bf16 : public Avx512FloatSums {
 public:
  Avx512Bf16(const Int4Matrix&, const Int4Activations& x) : x_(x.pairs.data()), k_(x.k / 2) {
    alignas(64) BFloat16 twice[32];
    for (int i = 0; i < 32; ++i) twice[i] = x.book.numbers[i % 16];
    book_ = _mm512_load_si512(twice);
  }

  template <int R>
  PIPELAB_INLINE void Units(const int32_t* codes, int64_t unit, int64_t, int64_t row,
                            __m512 (&sums)[R][kVectors]) const {
    const __m512i low = _mm512_loadu_si512(codes), high = _mm512_loadu_si512(codes + 16);
    const uint32_t* const x = x_ + row * k_ + unit * (kInt4Rows / 2);
#pragma GCC unroll 4
    for (int i = 0; i < kInt4Rows / 2; ++i) {
      const __m512i w0 = _mm512_permutexvar_epi16(_mm512_srli_epi16(low, 4 * i), book_);
      const __m512i w1 = _mm512_permutexvar_epi16(_mm512_srli_epi16(high, 4 * i), book_);
#pragma GCC unroll 8
      for (int r = 0; r < R; ++r) {
        const __m512i pair = _mm512_set1_epi32(static_cast<int>(x[r * k_ + i]));
        sums[r][0] = _mm512_dpbf16_ps(sums[r][0], AsBf16(w0), AsBf16(pair));
        sums[r][1] = _mm512_dpbf16_ps(sums[r][1], AsBf16(w1), AsBf16(pair));
      }
    }
  }

 private:
  static __m512bh AsBf16(__m512i x) { return (__m512bh)x; }  // NOLINT: there is no other cast

  __m512i book_;
  const uint32_t* const x_;
  const int64_t k_;
};

}  // namespace

Int4Run Avx512Bf16Int4() { return &RunPanels<Avx512Bf16>; }

}  // namespace cpu
}  // namespace pipelab
#else
namespace pipelab {
namespace cpu {
Int4Run Avx512Bf16Int4() { return nullptr; }
}  // namespace cpu
}  // namespace pipelab
#endif
