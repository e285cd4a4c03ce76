// Plain loops, for any processor.
#include <cmath>
#include <cstdint>

#include "kernels/cpu/int4/int4_call.h"
#include "kernels/cpu/int4/int4_kernel.h"

namespace pipelab {
namespace cpu {
namespace {

template <class Number>
struct Panel {
  Number at[kInt4Columns];
};

// Numbers are floats, or int8 with sums in int32.
template <class Number, class SumOf>
class Plain {
 public:
  using Sum = Panel<SumOf>;
  using Vector = Panel<float>;
  static constexpr int kVectors = 1, kMostRows = 1, kUnits = 1;

  Plain(const Int4Matrix&, const Int4Activations& x) : x_(x) {}

  Sum Begin(int64_t, int64_t) const { return {}; }

  template <int R>
  void Units(const int32_t* codes, int64_t unit, int64_t, int64_t row, Sum (&sums)[R][1]) const {
    for (int64_t i = 0; i < kInt4Rows; ++i) {
      const int bit = Int4Bit(i);
      const auto value = static_cast<SumOf>(Activation(row, unit * kInt4Rows + i));
      for (int64_t c = 0; c < kInt4Columns; ++c) {
        sums[0][0].at[c] += static_cast<SumOf>(Weight(codes[c] >> bit & 15)) * value;
      }
    }
  }

  static Vector Scale(const BFloat16* scales) {
    Vector all;
    for (int64_t c = 0; c < kInt4Columns; ++c) all.at[c] = scales[c];
    return all;
  }
  Vector Add(Vector total, const Sum& sum, const Vector& scale, int64_t row, int64_t span) const {
    float step = 1.0f;
    if constexpr (kInt8) step = x_.steps[row * x_.spans + span];
    for (int64_t c = 0; c < kInt4Columns; ++c) {
      total.at[c] += static_cast<float>(sum.at[c]) * (scale.at[c] * step);
    }
    return total;
  }
  static void Store(const Vector& total, float* y) {
    for (int64_t c = 0; c < kInt4Columns; ++c) y[c] = total.at[c];
  }

 private:
  static constexpr bool kInt8 = sizeof(Number) == 1;

  Number Weight(int code) const {
    if constexpr (kInt8) return x_.int8_book.values[code];
    return static_cast<Number>(x_.book.numbers[code]);
  }
  Number Activation(int64_t row, int64_t k) const {
    if constexpr (kInt8) return x_.bytes[row * x_.k + PlaceOfInt4Byte(k)];
    return static_cast<Number>(x_.floats[row * x_.k + k]);
  }

  const Int4Activations& x_;
};

}  // namespace

Int4Run PlainInt4(Int4Math math) {
  return math == Int4Math::kInt8 ? &RunPanels<Plain<int8_t, int32_t>>
                                 : &RunPanels<Plain<float, float>>;
}

}  // namespace cpu
}  // namespace pipelab
