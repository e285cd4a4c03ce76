// AVX2. float32: two lookups of 8 numbers, of which bit 3 of the code chooses. int8: products of
// codes by activations, eight sums of which fit 16 bits; where the code book is not the codes
// themselves, signed bytes by a lookup and products of absolute values by activations with the
// weights' signs.
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
  static constexpr int kVectors = 4;

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
  static constexpr int kMostRows = 8, kUnits = 1;
  using Sum = __m256;

  Avx2Float(const Int4Matrix&, const Int4Activations& x)
      : low_(_mm256_loadu_ps(x.book.numbers.data())),
        high_(_mm256_loadu_ps(x.book.numbers.data() + 8)),
        x_(x.floats.data()),
        k_(x.k) {}

  __m256 Begin(int64_t, int64_t) const { return _mm256_setzero_ps(); }

  template <int R>
  PIPELAB_INLINE void Units(const int32_t* codes, int64_t unit, int64_t, int64_t row,
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
#pragma GCC unroll 8
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

// Sums in int32, of any code book.
class Avx2Int8Sums : public Avx2Totals {
 public:
  using Sum = __m256i;

  explicit Avx2Int8Sums(const Int4Activations& x)
      : mask_(_mm256_set1_epi8(15)),
        x_(x.bytes.data()),
        steps_(x.steps.data()),
        excess_(x.excess.data()),
        k_(x.k),
        spans_(x.spans) {}

  __m256 Add(__m256 total, __m256i sum, __m256 scale, int64_t row, int64_t span) const {
    const __m256 step = _mm256_set1_ps(steps_[row * spans_ + span]);
    return _mm256_fmadd_ps(_mm256_cvtepi32_ps(sum), _mm256_mul_ps(scale, step), total);
  }

 protected:
  static PIPELAB_INLINE __m256i Quad(const int8_t* x) {
    int32_t quad;
    std::memcpy(&quad, x, sizeof(quad));
    return _mm256_set1_epi32(quad);
  }
  // The sums of two numbers of 16 bits each.
  static PIPELAB_INLINE __m256i Pairs(__m256i numbers) {
    return _mm256_madd_epi16(numbers, _mm256_set1_epi16(1));
  }
  PIPELAB_INLINE __m256i Low(__m256i codes) const { return _mm256_and_si256(codes, mask_); }

  const __m256i mask_;
  const int8_t* const x_;
  const float* const steps_;
  const int32_t* const excess_;
  const int64_t k_, spans_;
};

class Avx2AnyBook : public Avx2Int8Sums {
 public:
  static constexpr int kMostRows = 2, kUnits = 1;

  Avx2AnyBook(const Int4Matrix&, const Int4Activations& x)
      : Avx2Int8Sums(x),
        values_(_mm256_broadcastsi128_si256(
            _mm_loadu_si128(reinterpret_cast<const __m128i*>(x.int8_book.values)))) {}

  __m256i Begin(int64_t, int64_t) const { return _mm256_setzero_si256(); }

  template <int R>
  PIPELAB_INLINE void Units(const int32_t* codes, int64_t unit, int64_t, int64_t row,
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

 private:
  PIPELAB_INLINE __m256i Values(__m256i codes) const {
    return _mm256_shuffle_epi8(values_, Low(codes));
  }
  static PIPELAB_INLINE __m256i Dot(__m256i w, const int8_t* x) {
    return Pairs(_mm256_maddubs_epi16(_mm256_abs_epi8(w), _mm256_sign_epi8(Quad(x), w)));
  }

  const __m256i values_;
};

// Codes that are the numbers, plus a constant. Two products are at most 2 * 15 * 127, so that the
// eight such sums of four units fit 16 bits.
class Avx2Codes : public Avx2Int8Sums {
 public:
  static constexpr int kMostRows = 4, kUnits = 4;

  Avx2Codes(const Int4Matrix&, const Int4Activations& x) : Avx2Int8Sums(x) {}

  __m256i Begin(int64_t row, int64_t span) const {
    return _mm256_set1_epi32(excess_[row * spans_ + span]);
  }

  template <int R>
  PIPELAB_INLINE void Units(const int32_t* codes, int64_t unit, int64_t count, int64_t row,
                            __m256i (&sums)[R][kVectors]) const {
    const int8_t* const x = x_ + row * k_ + unit * kInt4Rows;
    HalfPanel<R>(codes, x, 0, count, sums);
    HalfPanel<R>(codes, x, 2, count, sums);
  }

 private:
  // Two vectors of columns, so that the sums of four rows stay in registers.
  template <int R>
  PIPELAB_INLINE void HalfPanel(const int32_t* codes, const int8_t* x, int vector, int64_t count,
                                __m256i (&sums)[R][kVectors]) const {
    __m256i dots[R][2] = {};
    for (int64_t i = 0; i < count; ++i) {
      const int32_t* const from = codes + i * kInt4Columns + 8 * vector;
      const __m256i low = Codes(from), high = Codes(from + 8);
      const __m256i w00 = Low(low), w01 = Low(_mm256_srli_epi16(low, 4));
      const __m256i w10 = Low(high), w11 = Low(_mm256_srli_epi16(high, 4));
#pragma GCC unroll 4
      for (int r = 0; r < R; ++r) {
        const __m256i x0 = Quad(x + r * k_ + i * kInt4Rows),
                      x1 = Quad(x + r * k_ + i * kInt4Rows + 4);
        dots[r][0] = _mm256_add_epi16(dots[r][0], _mm256_maddubs_epi16(w00, x0));
        dots[r][1] = _mm256_add_epi16(dots[r][1], _mm256_maddubs_epi16(w10, x0));
        dots[r][0] = _mm256_add_epi16(dots[r][0], _mm256_maddubs_epi16(w01, x1));
        dots[r][1] = _mm256_add_epi16(dots[r][1], _mm256_maddubs_epi16(w11, x1));
      }
    }
#pragma GCC unroll 4
    for (int r = 0; r < R; ++r) {
      sums[r][vector] = _mm256_add_epi32(sums[r][vector], Pairs(dots[r][0]));
      sums[r][vector + 1] = _mm256_add_epi32(sums[r][vector + 1], Pairs(dots[r][1]));
    }
  }
};

void RunInt8(const Int4Matrix& matrix, const Int4Activations& x, int64_t first_panel,
             int64_t last_panel, float* y_MN) {
  const auto run = x.int8_book.is_code ? &RunPanels<Avx2Codes> : &RunPanels<Avx2AnyBook>;
  run(matrix, x, first_panel, last_panel, y_MN);
}

}  // namespace

Int4Run Avx2Int4(Int4Math math) {
  return math == Int4Math::kInt8 ? &RunInt8 : &RunPanels<Avx2Float>;
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
