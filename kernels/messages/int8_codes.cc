#include "kernels/messages/int8_codes.h"

#include <algorithm>

#include "kernels/cpu/simd.h"

namespace pipelab {
namespace {

constexpr uint32_t kInfinityBits = 0x7f800000;

PIPELAB_INLINE uint32_t SizeBits(float x) { return __builtin_bit_cast(uint32_t, x) & 0x7fffffff; }

}  // namespace

PIPELAB_SIMD float LargestFinite(const float* x, int64_t n) {
  uint32_t largest = 0;  // encodings of floats that are not negative are in the order of floats
  for (int64_t i = 0; i < n; ++i) {
    const uint32_t bits = SizeBits(x[i]);
    largest = std::max(largest, bits & -static_cast<uint32_t>(bits < kInfinityBits));
  }
  return __builtin_bit_cast(float, largest);
}

float Int8BlockStep(float largest) {
  // Cut to bfloat16, a quotient is the step or the one below it.
  const uint32_t bits = __builtin_bit_cast(uint32_t, largest / 127) & 0xffff0000;
  const float step = __builtin_bit_cast(float, bits);
  if (127 * static_cast<double>(step) >= largest) return step;
  return __builtin_bit_cast(float, bits + 0x10000);
}

// The quotient by way of double is off by less than 2^-44. Value and step are of 24 and 8 bits, so a
// quotient that is no tie (a whole number and a half) is 2^-25 away from one at least. Rounding it to
// multiples of 2^-30 makes ties of ties again and of nothing else: the code is that of the exact
// quotient. A multiplication and an addition that the compiler joins into one change nothing in this.
PIPELAB_SIMD void EncodeInt8(const float* x, int64_t n, float step, int8_t* codes) {
  const double inverse = step > 0 ? 1 / static_cast<double>(step) : 0;
  constexpr double kToFine = 0x1.8p22, kToWhole = 0x1.8p52;
  for (int64_t i = 0; i < n; ++i) {
    const bool finite = SizeBits(x[i]) < kInfinityBits;
    const double value = finite ? x[i] : 0.0f;
    const double quotient = (value * inverse + kToFine) - kToFine;
    // Its low bits are the whole number in two's complement.
    const uint64_t whole = __builtin_bit_cast(uint64_t, quotient + kToWhole);
    codes[i] = finite ? static_cast<int8_t>(whole) : kInt8Nan;
  }
}

// Products are of 15 bits and whole multiples of 2^-133, so exact. The only step of which 127 are
// more than float32 holds is (1 + 2^-6) 2^121, and 126.1 of it are: no value has code 127 then.
PIPELAB_SIMD void DecodeInt8(const int8_t* codes, int64_t n, float step, float* y) {
  const float nan = __builtin_bit_cast(float, uint32_t{0x7fc00000});
  for (int64_t i = 0; i < n; ++i) {
    const float value = static_cast<float>(codes[i]) * step;
    y[i] = codes[i] == kInt8Nan ? nan : value;
  }
}

}  // namespace pipelab
