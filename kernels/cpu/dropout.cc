// Dropout masks, drawn 64 at a time: sixteen Philox blocks. The numbers are those of
// CounterRng::Uniform (tools/base/rng.h), which the tests hold to the bit.
#if defined(__x86_64__)
// GCC 12 takes the "undefined" operands inside its own header for mistakes (GCC bug 105593).
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wuninitialized"
#ifndef __clang__  // which does not know this one
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#endif
#include <immintrin.h>
#pragma GCC diagnostic pop
#endif

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>

#include "kernels/cpu/elementwise.h"
#include "kernels/simd.h"
#include "tools/base/rng.h"

namespace pipelab {
namespace cpu {
namespace {

constexpr int kLanes = 16;
constexpr int kGroup = 4 * kLanes;  // numbers of one call of DrawGroup

// Bits(4 * first_block + i) of the stream, i in [0, 64).
void DrawGroupPortable(uint64_t seed, uint64_t stream, uint64_t first_block, uint32_t* bits) {
  const std::array<uint32_t, 2> key{static_cast<uint32_t>(seed), static_cast<uint32_t>(seed >> 32)};
  for (int l = 0; l < kLanes; ++l) {
    const uint64_t block = first_block + static_cast<uint64_t>(l);
    const std::array<uint32_t, 4> out =
        Philox4x32({static_cast<uint32_t>(block), static_cast<uint32_t>(block >> 32),
                    static_cast<uint32_t>(stream), static_cast<uint32_t>(stream >> 32)},
                   key);
    std::copy(out.begin(), out.end(), bits + 4 * l);
  }
}

#if defined(__x86_64__)
// The same with eight blocks in the 64-bit lanes of each register. The compiler finds no good code
// for a 32 x 32 -> 64 bit product by itself. Only the low halves of the lanes count: the product
// reads no more.
__attribute__((target("avx512f"))) void DrawGroupAvx512(uint64_t seed, uint64_t stream,
                                                        uint64_t first_block, uint32_t* bits) {
  const __m512i multiplier0 = _mm512_set1_epi64(0xD2511F53),
                multiplier1 = _mm512_set1_epi64(0xCD9E8D57);
  const __m512i lane = _mm512_set_epi64(7, 6, 5, 4, 3, 2, 1, 0);
  const __m512i low_half = _mm512_set1_epi64(0xFFFFFFFF);
  __m512i c0[2], c1[2], c2[2], c3[2];  // two registers side by side hide the product's latency
  for (uint64_t h = 0; h < 2; ++h) {
    c0[h] = _mm512_add_epi64(_mm512_set1_epi64(static_cast<int64_t>(first_block + 8 * h)), lane);
    c1[h] = _mm512_srli_epi64(c0[h], 32);
    c2[h] = _mm512_set1_epi64(static_cast<int64_t>(stream & 0xFFFFFFFF));
    c3[h] = _mm512_set1_epi64(static_cast<int64_t>(stream >> 32));
  }
  uint32_t k0 = static_cast<uint32_t>(seed), k1 = static_cast<uint32_t>(seed >> 32);
  for (int round = 0; round < 10; ++round) {
    const __m512i key0 = _mm512_set1_epi64(k0), key1 = _mm512_set1_epi64(k1);
    for (int h = 0; h < 2; ++h) {
      const __m512i p0 = _mm512_mul_epu32(c0[h], multiplier0);
      const __m512i p1 = _mm512_mul_epu32(c2[h], multiplier1);
      c0[h] = _mm512_xor_si512(_mm512_xor_si512(_mm512_srli_epi64(p1, 32), c1[h]), key0);
      c1[h] = p1;
      c2[h] = _mm512_xor_si512(_mm512_xor_si512(_mm512_srli_epi64(p0, 32), c3[h]), key1);
      c3[h] = p0;
    }
    k0 += 0x9E3779B9;
    k1 += 0xBB67AE85;
  }
  const __m512i first_four = _mm512_set_epi64(11, 3, 10, 2, 9, 1, 8, 0);
  const __m512i last_four = _mm512_set_epi64(15, 7, 14, 6, 13, 5, 12, 4);
  for (size_t h = 0; h < 2; ++h) {
    const __m512i c01 =
        _mm512_or_si512(_mm512_and_si512(c0[h], low_half), _mm512_slli_epi64(c1[h], 32));
    const __m512i c23 =
        _mm512_or_si512(_mm512_and_si512(c2[h], low_half), _mm512_slli_epi64(c3[h], 32));
    _mm512_storeu_si512(bits + 32 * h, _mm512_permutex2var_epi64(c01, first_four, c23));
    _mm512_storeu_si512(bits + 32 * h + 16, _mm512_permutex2var_epi64(c01, last_four, c23));
  }
}

// Eight blocks in two registers for each word, and then the other eight.
__attribute__((target("avx2"))) void DrawGroupAvx2(uint64_t seed, uint64_t stream,
                                                   uint64_t first_block, uint32_t* bits) {
  const __m256i multiplier0 = _mm256_set1_epi64x(0xD2511F53),
                multiplier1 = _mm256_set1_epi64x(0xCD9E8D57);
  for (uint64_t first = first_block; first < first_block + kLanes; first += 8, bits += 32) {
    __m256i c0[2], c1[2], c2[2], c3[2];
    for (uint64_t h = 0; h < 2; ++h) {
      c0[h] = _mm256_add_epi64(_mm256_set1_epi64x(static_cast<int64_t>(first + 4 * h)),
                               _mm256_set_epi64x(3, 2, 1, 0));
      c1[h] = _mm256_srli_epi64(c0[h], 32);
      c2[h] = _mm256_set1_epi64x(static_cast<int64_t>(stream & 0xFFFFFFFF));
      c3[h] = _mm256_set1_epi64x(static_cast<int64_t>(stream >> 32));
    }
    uint32_t k0 = static_cast<uint32_t>(seed), k1 = static_cast<uint32_t>(seed >> 32);
    for (int round = 0; round < 10; ++round) {
      const __m256i key0 = _mm256_set1_epi64x(k0), key1 = _mm256_set1_epi64x(k1);
      for (int h = 0; h < 2; ++h) {
        const __m256i p0 = _mm256_mul_epu32(c0[h], multiplier0);
        const __m256i p1 = _mm256_mul_epu32(c2[h], multiplier1);
        c0[h] = _mm256_xor_si256(_mm256_xor_si256(_mm256_srli_epi64(p1, 32), c1[h]), key0);
        c1[h] = p1;
        c2[h] = _mm256_xor_si256(_mm256_xor_si256(_mm256_srli_epi64(p0, 32), c3[h]), key1);
        c3[h] = p0;
      }
      k0 += 0x9E3779B9;
      k1 += 0xBB67AE85;
    }
    for (int h = 0; h < 2; ++h) {
      const __m256i c01 = _mm256_blend_epi32(c0[h], _mm256_slli_epi64(c1[h], 32), 0xAA);
      const __m256i c23 = _mm256_blend_epi32(c2[h], _mm256_slli_epi64(c3[h], 32), 0xAA);
      const __m256i even = _mm256_unpacklo_epi64(c01, c23), odd = _mm256_unpackhi_epi64(c01, c23);
      auto* const to = reinterpret_cast<__m256i_u*>(bits + 16 * h);
      _mm256_storeu_si256(to, _mm256_permute2x128_si256(even, odd, 0x20));
      _mm256_storeu_si256(to + 1, _mm256_permute2x128_si256(even, odd, 0x31));
    }
  }
}
#endif

using DrawGroupFunction = void (*)(uint64_t, uint64_t, uint64_t, uint32_t*);

DrawGroupFunction ChooseDrawGroup() {
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx512f")) return DrawGroupAvx512;
  if (__builtin_cpu_supports("avx2")) return DrawGroupAvx2;
#endif
  return DrawGroupPortable;
}

template <bool kAdd>
PIPELAB_INLINE void Apply(const float* a, const float* x, const DropoutMask& mask, int64_t n,
                          float* y) {
  // Uniform = (bits >> 8) 2^-24 >= rate, in whole numbers: exact, because rate 2^24 is exact in
  // double.
  const uint32_t threshold = static_cast<uint32_t>(std::ceil(mask.rate * 0x1.0p24));
  const float scale = 1.0f / (1.0f - mask.rate);
  const uint64_t seed = mask.rng.seed(), stream = mask.rng.stream();
  static const DrawGroupFunction draw_group = ChooseDrawGroup();
  uint32_t bits[kGroup] = {};
  uint64_t block = mask.offset / 4;
  int64_t begin = -static_cast<int64_t>(mask.offset % 4);  // the element that bits[0] belongs to
  for (; begin < n; begin += kGroup, block += kLanes) {
    draw_group(seed, stream, block, bits);
    if (begin >= 0 && begin + kGroup <= n) {
#pragma omp simd
      for (int j = 0; j < kGroup; ++j) {
        const float kept = (bits[j] >> 8) >= threshold ? x[begin + j] * scale : 0.0f;
        y[begin + j] = kAdd ? a[begin + j] + kept : kept;
      }
    } else {
      const int64_t first = std::max<int64_t>(0, -begin),
                    last = std::min<int64_t>(kGroup, n - begin);
      for (int64_t j = first; j < last; ++j) {
        const float kept = (bits[j] >> 8) >= threshold ? x[begin + j] * scale : 0.0f;
        y[begin + j] = kAdd ? a[begin + j] + kept : kept;
      }
    }
  }
}

}  // namespace

PIPELAB_SIMD void DropoutForward(const float* a, const float* x, const DropoutMask& mask, int64_t n,
                                 float* y) {
  if (a == nullptr) {
    Apply<false>(a, x, mask, n, y);
  } else {
    Apply<true>(a, x, mask, n, y);
  }
}

}  // namespace cpu
}  // namespace pipelab
