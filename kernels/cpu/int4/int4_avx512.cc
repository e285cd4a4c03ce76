// float32 products in AVX-512: a lookup of 16 numbers takes the low 4 bits of each lane, so that a
// shift and a permutation make floats of codes, whatever the code book.
#include "kernels/cpu/int4/int4_call.h"

#if defined(__AVX512F__)
#include <immintrin.h>

#include "kernels/cpu/int4/int4_avx512.h"
#include "kernels/cpu/int4/int4_kernel.h"

namespace pipelab {
namespace cpu {
namespace {

class Avx512 : public Avx512FloatSums {
 public:
  Avx512(const Int4Matrix&, const Int4Activations& x)
      : book_(_mm512_loadu_ps(x.book.numbers.data())), x_(x.floats.data()), k_(x.k) {}

  template <int R>
  PIPELAB_INLINE void Units(const int32_t* codes, int64_t unit, int64_t, int64_t row,
                            __m512 (&sums)[R][kVectors]) const {
    const __m512i low = _mm512_loadu_si512(codes), high = _mm512_loadu_si512(codes + 16);
    const float* const x = x_ + row * k_ + unit * kInt4Rows;
#pragma GCC unroll 8
    for (int i = 0; i < kInt4Rows; ++i) {
      const __m512 w0 = _mm512_permutexvar_ps(_mm512_srli_epi32(low, Int4Bit(i)), book_);
      const __m512 w1 = _mm512_permutexvar_ps(_mm512_srli_epi32(high, Int4Bit(i)), book_);
#pragma GCC unroll 8
      for (int r = 0; r < R; ++r) {
        const __m512 value = _mm512_set1_ps(x[r * k_ + i]);
        sums[r][0] = _mm512_fmadd_ps(w0, value, sums[r][0]);
        sums[r][1] = _mm512_fmadd_ps(w1, value, sums[r][1]);
      }
    }
  }

 private:
  const __m512 book_;
  const float* const x_;
  const int64_t k_;
};

}  // namespace

Int4Run Avx512Int4(Int4Math math) { return math == Int4Math::kInt8 ? nullptr : &RunPanels<Avx512>; }

}  // namespace cpu
}  // namespace pipelab
#else
namespace pipelab {
namespace cpu {
Int4Run Avx512Int4(Int4Math) { return nullptr; }
}  // namespace cpu
}  // namespace pipelab
#endif
