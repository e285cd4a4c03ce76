// AVX2. float32: two lookups of 8 numbers, of which bit 3 of the code chooses. int8: signed bytes
// by a lookup, products of absolute values by activations with the weights' signs, which fit 16
// bits in pairs.
#include "kernels/cpu/int4/int4_call.h"

#if defined(__AVX2__) && defined(__FMA__)
#include <immintrin.h>

#include <cstring>

#include "kernels/cpu/int4/int4_kernel.h"

namespace pipelab {
namespace cpu {
namespace {

// Totals of both maths: four vectors of 8 columns.
struct Avx2Totals {
  using Vector = __m256;
  static constexpr int kVectors = 4, kMostRows = 2;

  static __m256 Scale(const BFloat16* scales) {
    const __m128i bits = _mm_loadu_si128(reinterpret_cast<const __m128i*>(scales));
    return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(bits), 16));
  }
  static void Store(__m256 total, float* y) { _mm256_storeu_ps(y, total); }
};

__m256i Codes(const int32_t* codes) {
  return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(codes));
}

class Avx2Float : public Avx2Totals {
 public:
  using Sum = __m256;

  Avx2Float(const Int4Matrix&, const Int4Activations& x)
      : low_(_mm256_loadu_ps(x.book.numbers.data())),
        high_(_mm256_loadu_ps(x.book.numbers.data() + 8)),
        x_(x.floats.data()),
        k_(x.k) {}

  __m256 Begin(int64_t, int64_t) const { return _mm256_setzero_ps(); }

  template <int R>
  PIPELAB_INLINE void Unit(const int32_t* codes, int64_t unit, int64_t row,
                           __m256 (&sums)[R][kVectors]) const {
    const float* const x = x_ + row * k_ + unit * kInt4Rows;
#pragma GCC unroll 4
    for (int v = 0; v < kVectors; ++v) {
      const __m256i all = Codes(codes + 8 * v);
#pragma GCC unroll 8
      for (int i = 0; i < kInt4Rows; ++i) {
        const __m256i code = _mm256_srli_epi32(all, Int4Bit(i));
        const __m256 w = _mm256_blendv_ps(_mm256_permutevar8x32_ps(low_, code),
                                          _mm256_permutevar8x32_ps(high_, code),
                                          _mm256_castsi256_ps(_mm256_slli_epi32(code, 28)));
#pragma GCC unroll 2
        for (int r = 0; r < R; ++r) {
          sums[r][v] = _mm256_fmadd_ps(w, _mm256_set1_ps(x[r * k_ + i]), sums[r][v]);
        }
      }
    }
  }

  __m256 Add(__m256 total, __m256 sum, __m256 scale, int64_t, int64_t) const {
    return _mm256_fmadd_ps(sum, scale, total);
  }

 private:
  const __m256 low_, high_;
  const float* const x_;
  const int64_t k_;
};

class Avx2Int8 : public Avx2Totals {
 public:
  using Sum = __m256i;

  Avx2Int8(const Int4Matrix&, const Int4Activations& x)
      : values_(_mm256_broadcastsi128_si256(
            _mm_loadu_si128(reinterpret_cast<const __m128i*>(x.int8_book.values)))),
        mask_(_mm256_set1_epi8(15)),
        x_(x.bytes.data()),
        steps_(x.steps.data()),
        k_(x.k),
        spans_(x.spans) {}

  __m256i Begin(int64_t, int64_t) const { return _mm256_setzero_si256(); }

  template <int R>
  PIPELAB_INLINE void Unit(const int32_t* codes, int64_t unit, int64_t row,
                           __m256i (&sums)[R][kVectors]) const {
    const int8_t* const x = x_ + row * k_ + unit * kInt4Rows;
#pragma GCC unroll 4
    for (int v = 0; v < kVectors; ++v) {
      const __m256i all = Codes(codes + 8 * v);
      const __m256i w0 = Values(all), w1 = Values(_mm256_srli_epi16(all, 4));
#pragma GCC unroll 2
      for (int r = 0; r < R; ++r) {
        const __m256i dot = _mm256_add_epi32(Dot(w0, x + r * k_), Dot(w1, x + r * k_ + 4));
        sums[r][v] = _mm256_add_epi32(sums[r][v], dot);
      }
    }
  }

  __m256 Add(__m256 total, __m256i sum, __m256 scale, int64_t row, int64_t span) const {
    const __m256 step = _mm256_set1_ps(steps_[row * spans_ + span]);
    return _mm256_fmadd_ps(_mm256_cvtepi32_ps(sum), _mm256_mul_ps(scale, step), total);
  }

 private:
  PIPELAB_INLINE __m256i Values(__m256i codes) const {
    return _mm256_shuffle_epi8(values_, _mm256_and_si256(codes, mask_));
  }
  static PIPELAB_INLINE __m256i Dot(__m256i w, const int8_t* x) {
    int32_t quad;
    std::memcpy(&quad, x, sizeof(quad));
    const __m256i pairs =
        _mm256_maddubs_epi16(_mm256_abs_epi8(w), _mm256_sign_epi8(_mm256_set1_epi32(quad), w));
    return _mm256_madd_epi16(pairs, _mm256_set1_epi16(1));
  }

  const __m256i values_, mask_;
  const int8_t* const x_;
  const float* const steps_;
  const int64_t k_, spans_;
};

}  // namespace

Int4Run Avx2Int4(Int4Math math) {
  return math == Int4Math::kInt8 ? &RunPanels<Avx2Int8> : &RunPanels<Avx2Float>;
}

}  // namespace cpu
}  // namespace pipelab
#else
namespace pipelab {
namespace cpu {
Int4Run Avx2Int4(Int4Math) { return nullptr; }
}  // namespace cpu
}  // namespace pipelab
#endif
