// Sizes of a matrix of 4-bit weights, where a code lies (kernels/int4_weights.h), and what a
// product does to its factors. For kernels too, so free of Abseil.
#ifndef PIPELAB_KERNELS_INT4_LAYOUT_H_
#define PIPELAB_KERNELS_INT4_LAYOUT_H_

#include <cmath>
#include <cstdint>

#include "kernels/tensor/bfloat16.h"

namespace pipelab {

inline constexpr int64_t kInt4Columns = 32;  // of a panel
inline constexpr int64_t kInt4Rows = 8;      // of a unit

struct Int4Shape {
  int64_t k = 0, n = 0;
  int64_t group = 0;  // rows with one scale: 32, 64, 128 or k

  PIPELAB_HOST_DEVICE constexpr int64_t units() const { return (k + kInt4Rows - 1) / kInt4Rows; }
  PIPELAB_HOST_DEVICE constexpr int64_t groups() const { return (k + group - 1) / group; }
  PIPELAB_HOST_DEVICE constexpr int64_t panels() const {
    return (n + kInt4Columns - 1) / kInt4Columns;
  }
  // Rows whose products are added before the scale applies, and that have one step in int8.
  PIPELAB_HOST_DEVICE constexpr int64_t span() const {
    return group < 128 ? (group + kInt4Rows - 1) / kInt4Rows * kInt4Rows : 128;
  }
  PIPELAB_HOST_DEVICE constexpr int64_t spans() const { return (k + span() - 1) / span(); }
};

// The lowest bit of row `r` of a unit.
PIPELAB_HOST_DEVICE constexpr int Int4Bit(int64_t r) {
  return static_cast<int>(4 * (r / 2 + 4 * (r % 2)));
}

// Where the int8 activation of row `k` lies: a unit's rows in the order 0 4 1 5 2 6 3 7, which is
// that of the low half bytes and then of the high ones.
constexpr int64_t PlaceOfInt4Byte(int64_t k) {
  const int64_t r = k % kInt4Rows;
  const int64_t place[kInt4Rows] = {0, 2, 4, 6, 1, 3, 5, 7};
  return k - r + place[r];
}

// What a product takes its factors for; sums are in float32, and in int8 exact within a span.
//   kFloat32   as they are
//   kBFloat16  activations and code book rounded to bfloat16
//   kInt8      in each row's span, activations as whole multiples, up to 127, of a 127th of their
//              largest; the code book likewise unless it is whole numbers
enum class Int4Math : uint8_t { kFloat32, kBFloat16, kInt8 };

// Activations of a span as int8, by the largest absolute one.
struct Int8Step {
  PIPELAB_HOST_DEVICE explicit Int8Step(float most)
      : step(most / 127.0f), inverse(most > 0.0f ? 127.0f / most : 0.0f) {}
  PIPELAB_HOST_DEVICE int8_t Of(float x) const { return static_cast<int8_t>(rintf(x * inverse)); }
  float step, inverse;
};

}  // namespace pipelab

#endif  // PIPELAB_KERNELS_INT4_LAYOUT_H_
