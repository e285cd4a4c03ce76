// Products with 4-bit weights: kernels/quantized_kernels.h.
#include <cmath>

#include "kernels/cuda/functions.h"
#include "kernels/cuda/launch.h"
#include "kernels/cuda/quantized_parts.h"

namespace pipelab {
namespace gpu {
namespace {

constexpr int kRows = 4;  // of activations by each code that a thread reads

// Activations as the math takes them: `at` gives numbers, `step` the factor of a row's span.
template <class T>
struct FloatRows {
  const T* x;
  int64_t k;
  using Sum = float;
  PIPELAB_DEVICE float At(int64_t row, int64_t i) const { return x[row * k + i]; }
  PIPELAB_DEVICE float Step(int64_t, int64_t) const { return 1.0f; }
};
struct ByteRows {
  const int8_t* bytes;
  const float* steps;
  int64_t k, spans;
  using Sum = int32_t;
  PIPELAB_DEVICE int32_t At(int64_t row, int64_t i) const { return bytes[row * k + i]; }
  PIPELAB_DEVICE float Step(int64_t row, int64_t span) const { return steps[row * spans + span]; }
};

// y of a column and up to kRows rows: neighbouring threads have neighbouring columns, so a warp
// reads a unit's 32 codes as one line.
template <class Rows, class T>
PIPELAB_DEVICE inline void ColumnOfRows(const Int4Call& call, const Rows& x, int64_t first,
                                        int64_t n, T* y) {
  using Sum = typename Rows::Sum;
  const Int4Shape& s = call.shape;
  const int64_t panel = n / kInt4Columns, c = n % kInt4Columns;
  const int32_t* const codes = call.codes + panel * s.units() * kInt4Columns + c;
  const BFloat16* const scales = call.scales + panel * s.groups() * kInt4Columns + c;
  const int64_t rows = call.m - first < kRows ? call.m - first : kRows;
  float totals[kRows] = {};
  for (int64_t span = 0; span < s.spans(); ++span) {
    Sum sums[kRows] = {};
    const int64_t begin = span * s.span(), end = begin + s.span() < s.k ? begin + s.span() : s.k;
    for (int64_t at = begin; at < end; at += kInt4Rows) {
      const auto unit = static_cast<uint32_t>(codes[at / kInt4Rows * kInt4Columns]);
      const int64_t count = end - at < kInt4Rows ? end - at : kInt4Rows;
      for (int64_t i = 0; i < count; ++i) {
        const auto w = static_cast<Sum>(call.book[unit >> Int4Bit(i) & 15]);
        for (int64_t r = 0; r < rows; ++r) sums[r] += w * x.At(first + r, at + i);
      }
    }
    const float scale = scales[begin / s.group * kInt4Columns];
    for (int64_t r = 0; r < rows; ++r) {
      totals[r] += static_cast<float>(sums[r]) * (scale * x.Step(first + r, span));
    }
  }
  for (int64_t r = 0; r < rows; ++r) y[(first + r) * s.n + n] = totals[r];
}

template <class Rows, class T>
void Product(Queue& queue, const Int4Call& call, const Rows& x, T* y) {
  const int64_t n = call.shape.n;
  ForEach(queue, "Int4Product", (call.m + kRows - 1) / kRows * n,
          [=] PIPELAB_DEVICE(int64_t i) { ColumnOfRows(call, x, i / n * kRows, i % n, y); });
}

}  // namespace

template <class T>
void Int4Product(Queue& queue, const Int4Call& call, Int4Math math, const T* x, T* y) {
  const Int4Shape s = call.shape;
  if (math == Int4Math::kBFloat16) return Int4ProductByTiles(queue, call, x, y);
  if (math == Int4Math::kFloat32) return Product(queue, call, FloatRows<T>{x, s.k}, y);
  const int64_t spans = s.spans();
  auto* const steps = static_cast<float*>(queue.Scratch(call.m * spans * 4 + call.m * s.k));
  if (steps == nullptr) return;
  auto* const bytes = reinterpret_cast<int8_t*>(steps + call.m * spans);
  const float book_step = call.book_step;
  ForEach(queue, "Int4Activations", call.m * spans, [=] PIPELAB_DEVICE(int64_t i) {
    const int64_t begin = i % spans * s.span();
    const int64_t count = s.k - begin < s.span() ? s.k - begin : s.span();
    const T* const from = x + i / spans * s.k + begin;
    float most = 0.0f;
    for (int64_t j = 0; j < count; ++j) most = fmaxf(most, fabsf(static_cast<float>(from[j])));
    const Int8Step step(most);
    steps[i] = step.step * book_step;
    for (int64_t j = 0; j < count; ++j) bytes[i / spans * s.k + begin + j] = step.Of(from[j]);
  });
  Product(queue, call, ByteRows{bytes, steps, s.k, spans}, y);
}

template void Int4Product(Queue&, const Int4Call&, Int4Math, const float*, float*);
template void Int4Product(Queue&, const Int4Call&, Int4Math, const BFloat16*, BFloat16*);

}  // namespace gpu
}  // namespace pipelab
