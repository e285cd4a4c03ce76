// Dropout masks, drawn 64 at a time: sixteen Philox blocks side by side, one a vector lane. The
// numbers are those of CounterRng::Uniform (tools/base/rng.h), which the tests hold to the bit.
#include <algorithm>
#include <cmath>
#include <cstdint>

#include "kernels/cpu/elementwise.h"
#include "kernels/cpu/simd.h"

namespace pipelab {
namespace cpu {
namespace {

constexpr int kLanes = 16;
constexpr int kGroup = 4 * kLanes;  // numbers of one call of DrawGroup

// Bits(4 * first_block + i) of the stream, i in [0, 64).
PIPELAB_INLINE void DrawGroup(uint64_t seed, uint64_t stream, uint64_t first_block,
                              uint32_t* bits) {
#pragma omp simd
  for (int l = 0; l < kLanes; ++l) {
    const uint64_t block = first_block + static_cast<uint64_t>(l);
    uint32_t c0 = static_cast<uint32_t>(block), c1 = static_cast<uint32_t>(block >> 32);
    uint32_t c2 = static_cast<uint32_t>(stream), c3 = static_cast<uint32_t>(stream >> 32);
    uint32_t k0 = static_cast<uint32_t>(seed), k1 = static_cast<uint32_t>(seed >> 32);
#pragma GCC unroll 10
    for (int round = 0; round < 10; ++round) {
      const uint64_t p0 = uint64_t{0xD2511F53} * c0;
      const uint64_t p1 = uint64_t{0xCD9E8D57} * c2;
      c0 = static_cast<uint32_t>(p1 >> 32) ^ c1 ^ k0;
      c1 = static_cast<uint32_t>(p1);
      c2 = static_cast<uint32_t>(p0 >> 32) ^ c3 ^ k1;
      c3 = static_cast<uint32_t>(p0);
      k0 += 0x9E3779B9;
      k1 += 0xBB67AE85;
    }
    bits[4 * l] = c0;
    bits[4 * l + 1] = c1;
    bits[4 * l + 2] = c2;
    bits[4 * l + 3] = c3;
  }
}

template <bool kAdd>
PIPELAB_INLINE void Apply(const float* a, const float* x, const DropoutMask& mask, int64_t n,
                          float* y) {
  // Uniform = (bits >> 8) 2^-24 >= rate, in whole numbers: exact, because rate 2^24 is exact in
  // double.
  const uint32_t threshold = static_cast<uint32_t>(std::ceil(mask.rate * 0x1.0p24));
  const float scale = 1.0f / (1.0f - mask.rate);
  const uint64_t seed = mask.rng.seed(), stream = mask.rng.stream();
  uint32_t bits[kGroup];
  uint64_t block = mask.offset / 4;
  int64_t begin = -static_cast<int64_t>(mask.offset % 4);  // the element that bits[0] belongs to
  for (; begin < n; begin += kGroup, block += kLanes) {
    DrawGroup(seed, stream, block, bits);
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
