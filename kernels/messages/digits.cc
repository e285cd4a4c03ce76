#include "kernels/messages/digits.h"

#include <algorithm>

#include "kernels/simd.h"

namespace pipelab {
namespace {

constexpr int64_t kDigitMask = (int64_t{1} << kDigitBits) - 1;

// The absolute values of numbers, from their lowest digit on, and what decides their float32.
struct TopDigits {
  int64_t carry[kDigitBlock] = {};
  int64_t high[kDigitBlock] = {};   // the highest digit that is not 0, in (0, 2^40)
  int64_t low[kDigitBlock] = {};    // the one below it
  int64_t more[kDigitBlock] = {};   // 0 if all below are
  int64_t place[kDigitBlock] = {};  // of the highest
  int64_t last[kDigitBlock] = {};   // the digit that was last taken
  int64_t rest[kDigitBlock] = {};   // 0 if all before it are

  PIPELAB_INLINE void Take(const int64_t* digits, const int64_t* sign, int64_t d) {
    for (int64_t i = 0; i < kDigitBlock; ++i) {
      const int64_t value = (digits[i] ^ sign[i]) - sign[i] + carry[i];
      const int64_t digit = value & kDigitMask;
      const bool any = digit != 0;
      carry[i] = value >> kDigitBits;
      high[i] = any ? digit : high[i];
      low[i] = any ? last[i] : low[i];
      more[i] = any ? rest[i] : more[i];
      place[i] = any ? d : place[i];
      rest[i] |= last[i];
      last[i] = digit;
    }
  }
};

// The encoding of the float32 nearest to digit `place`, `high` in [0, 2^40), and what is below it.
// Without branches, so that the compiler makes vector code of it.
PIPELAB_INLINE int64_t Nearest(int64_t high, int64_t low, int64_t more, int64_t place) {
  const int64_t nonzero = -high >> 63;  // -1, or 0 where the number is 0
  high += 1 + nonzero;
  // The position of the leading bit is an exponent: 2^52 + high is exact in double.
  const double as_double = __builtin_bit_cast(double, high | 0x4330000000000000) - 0x1p52;
  const int64_t leading =
      static_cast<int64_t>(__builtin_bit_cast(uint64_t, as_double) >> 52) - 1023;
  // 64 bits from the leading one on, the last of which also stands for all that follow.
  const int64_t left = 63 - leading;  // 24 or more
  const uint64_t under = static_cast<uint64_t>(low) << 24;
  const uint64_t follow = under << left | static_cast<uint64_t>(more);
  const uint64_t all = static_cast<uint64_t>(high) << left | under >> (64 - left) |
                       static_cast<uint64_t>(follow != 0);
  // A number below 2^24 times 2^-149 is its own encoding, and has less than 24 bits; above, the
  // exponent grows by one for each further bit.
  const int64_t above = kDigitBits * place + leading - 23;
  const int64_t lacking = -(above & above >> 63);
  const uint64_t bits = all >> lacking;
  const uint64_t kept = bits >> 40;
  const uint64_t rest = (bits & kDigitMask) + (kept & 1);
  const uint64_t up = (rest + (kDigitMask >> 1)) >> 40;  // 1 above a half, and at it if odd
  const int64_t nearest = ((above + lacking) << 23) + static_cast<int64_t>(kept + up);
  constexpr int64_t kInfinity = 0x7f800000;
  return std::min(nearest, kInfinity) & nonzero;
}

}  // namespace

PIPELAB_SIMD ShiftRange SplitDigits(const float* x, SplitFloats* split) {
  int32_t lowest = 255, highest = -1;
  for (int64_t i = 0; i < kDigitBlock; ++i) {
    const uint32_t bits = __builtin_bit_cast(uint32_t, x[i]);
    const int32_t exponent = static_cast<int32_t>(bits >> 23 & 255);
    const int32_t shift = exponent == 0 ? 0 : exponent - 1;
    const bool zero = (bits & 0x7fffffff) == 0;
    split->mantissa[i] = (bits & 0x7fffff) | (exponent == 0 ? 0u : 0x800000u);
    split->shift[i] = shift;
    split->sign[i] = static_cast<int32_t>(bits) >> 31;
    const int32_t low = zero ? 255 : shift, high = zero ? -1 : shift;
    lowest = low < lowest ? low : lowest;
    highest = high > highest ? high : highest;
  }
  return {lowest, highest};
}

PIPELAB_SIMD void AddDigits(const SplitFloats& split, int first, int count, int64_t* digits) {
  for (int d = first; d < first + count; ++d, digits += kDigitBlock) {
    for (int64_t i = 0; i < kDigitBlock; ++i) {
      // The mantissa begins at bit shift - 40 d of this digit, which is mantissa << 40 shifted to
      // the right by 40 (d + 1) - shift. One less of both fits 63 bits; a shift of 63 or more, or
      // below -1 (unsigned, a large one), leaves nothing.
      const uint32_t right = static_cast<uint32_t>(kDigitBits * (d + 1) - 1 - split.shift[i]);
      const uint32_t most = right < 63 ? right : 63;
      const uint64_t shifted = static_cast<uint64_t>(split.mantissa[i]) << (kDigitBits - 1) >> most;
      const int64_t part = static_cast<int64_t>(shifted) & kDigitMask;
      const int64_t sign = split.sign[i];
      digits[i] += (part ^ sign) - sign;
    }
  }
}

PIPELAB_SIMD void AddPlain(const int64_t* other, int count, int64_t* digits) {
  for (int64_t i = 0; i < count * kDigitBlock; ++i) digits[i] += other[i];
}

PIPELAB_SIMD void RoundDigits(int first, int count, const int64_t* digits, float* sums) {
  int64_t sign[kDigitBlock] = {};  // the carry out of all digits, then 0 or -1
  for (int d = 0; d < count; ++d) {
    for (int64_t i = 0; i < kDigitBlock; ++i) {
      sign[i] = (digits[d * kDigitBlock + i] + sign[i]) >> kDigitBits;
    }
  }
  for (int64_t i = 0; i < kDigitBlock; ++i) sign[i] >>= 63;
  TopDigits top;
  for (int d = 0; d < count; ++d) top.Take(digits + d * kDigitBlock, sign, first + d);
  constexpr int64_t kNone[kDigitBlock] = {};
  top.Take(kNone, kNone, first + count);  // what was carried out of the last
  for (int64_t i = 0; i < kDigitBlock; ++i) {
    const int64_t size = Nearest(top.high[i], top.low[i], top.more[i], top.place[i]);
    const uint32_t bits = static_cast<uint32_t>(size | (sign[i] & 0x80000000));
    sums[i] = __builtin_bit_cast(float, bits);
  }
}

}  // namespace pipelab
