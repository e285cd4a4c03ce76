// The loops of order-free sums (order_free_sum.h): blocks of 64 float32 as digits of 40 bits.
//
//   SplitFloats split;
//   const ShiftRange range = SplitDigits(x, &split);
//   AddDigits(split, first, count, digits);     // digits[count][64]
//   RoundDigits(first, count, digits, sums);
//
// A float32 is (-1)^sign mantissa 2^(shift - 149), the mantissa below 2^24. Digit d of a number
// counts 2^(40 d - 149). Whole numbers only, so bits are the same on every processor.
#ifndef PIPELAB_KERNELS_MESSAGES_DIGITS_H_
#define PIPELAB_KERNELS_MESSAGES_DIGITS_H_

#include <cstdint>

namespace pipelab {

inline constexpr int kDigitBits = 40;
inline constexpr int kMostDigits = 7;  // 280 bits; the largest float32 has 277
inline constexpr int64_t kDigitBlock = 64;

struct SplitFloats {
  uint32_t mantissa[kDigitBlock];
  int32_t shift[kDigitBlock];
  int32_t sign[kDigitBlock];  // 0 or -1
};

// Shifts of the smallest and the largest value that is not 0.
struct ShiftRange {
  int32_t lowest = 0, highest = 0;
  bool all_zero() const { return lowest > highest; }
  bool all_finite() const { return all_zero() || highest < 254; }
  int first_digit() const { return lowest / kDigitBits; }
  int end_digit() const { return (highest + 23) / kDigitBits + 1; }
};

// Splits 64 values.
ShiftRange SplitDigits(const float* x, SplitFloats* split);
// Adds digits [first, first + count) of each number, which are below 2^40. Nothing is carried, so
// that sums of digits are as free of order as whole numbers are.
void AddDigits(const SplitFloats& split, int first, int count, int64_t* digits);
// Adds count * 64 digits.
void AddPlain(const int64_t* other, int count, int64_t* digits);
// To the nearest float32, ties to even. Needs |digits| <= 2^62.
void RoundDigits(int first, int count, const int64_t* digits, float* sums);

}  // namespace pipelab

#endif  // PIPELAB_KERNELS_MESSAGES_DIGITS_H_
