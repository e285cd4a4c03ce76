// int8 products in AVX-512: quads of unsigned weights by signed activations, added in int32. Two
// masks give the bytes of a unit; a code book that is not the codes themselves takes a lookup.
#include "kernels/cpu/int4/int4_call.h"

#if defined(__AVX512VNNI__) && defined(__AVX512BW__)
#include <immintrin.h>

#include <cstring>

#include "kernels/cpu/int4/int4_avx512.h"
#include "kernels/cpu/int4/int4_kernel.h"

namespace pipelab {
namespace cpu {
namespace {

template <bool kLookup>
class Avx512Vnni : public Avx512Totals {
 public:
  using Sum = __m512i;

  Avx512Vnni(const Int4Matrix&, const Int4Activations& x)
      : mask_(_mm512_set1_epi8(15)),
        u_(_mm512_broadcast_i32x4(
            _mm_loadu_si128(reinterpret_cast<const __m128i*>(x.int8_book.u)))),
        x_(x.bytes.data()),
        steps_(x.steps.data()),
        excess_(x.excess.data()),
        k_(x.k),
        spans_(x.spans) {}

  __m512i Begin(int64_t row, int64_t span) const {
    return _mm512_set1_epi32(excess_[row * spans_ + span]);
  }

  template <int R>
  PIPELAB_INLINE void Units(const int32_t* codes, int64_t unit, int64_t, int64_t row,
                            __m512i (&sums)[R][kVectors]) const {
    const __m512i low = _mm512_loadu_si512(codes), high = _mm512_loadu_si512(codes + 16);
    const __m512i w00 = Bytes(low), w01 = Bytes(_mm512_srli_epi16(low, 4));
    const __m512i w10 = Bytes(high), w11 = Bytes(_mm512_srli_epi16(high, 4));
    const int8_t* const x = x_ + row * k_ + unit * kInt4Rows;
#pragma GCC unroll 8
    for (int r = 0; r < R; ++r) {
      const __m512i x0 = Quad(x + r * k_), x1 = Quad(x + r * k_ + 4);
      sums[r][0] = _mm512_dpbusd_epi32(sums[r][0], w00, x0);
      sums[r][1] = _mm512_dpbusd_epi32(sums[r][1], w10, x0);
      sums[r][0] = _mm512_dpbusd_epi32(sums[r][0], w01, x1);
      sums[r][1] = _mm512_dpbusd_epi32(sums[r][1], w11, x1);
    }
  }

  __m512 Add(__m512 total, __m512i sum, __m512 scale, int64_t row, int64_t span) const {
    const __m512 step = _mm512_set1_ps(steps_[row * spans_ + span]);
    return _mm512_fmadd_ps(_mm512_cvtepi32_ps(sum), _mm512_mul_ps(scale, step), total);
  }

 private:
  PIPELAB_INLINE __m512i Bytes(__m512i codes) const {
    const __m512i low = _mm512_and_si512(codes, mask_);
    if constexpr (kLookup) return _mm512_shuffle_epi8(u_, low);
    return low;
  }
  static PIPELAB_INLINE __m512i Quad(const int8_t* x) {
    int32_t quad;
    std::memcpy(&quad, x, sizeof(quad));
    return _mm512_set1_epi32(quad);
  }

  const __m512i mask_, u_;
  const int8_t* const x_;
  const float* const steps_;
  const int32_t* const excess_;
  const int64_t k_, spans_;
};

void Run(const Int4Matrix& matrix, const Int4Activations& x, int64_t first_panel,
         int64_t last_panel, float* y_MN) {
  const auto run =
      x.int8_book.is_code ? &RunPanels<Avx512Vnni<false>> : &RunPanels<Avx512Vnni<true>>;
  run(matrix, x, first_panel, last_panel, y_MN);
}

}  // namespace

Int4Run Avx512VnniInt4() { return &Run; }

}  // namespace cpu
}  // namespace pipelab
#else
namespace pipelab {
namespace cpu {
Int4Run Avx512VnniInt4() { return nullptr; }
}  // namespace cpu
}  // namespace pipelab
#endif
