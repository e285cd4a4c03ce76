// The loops that kernels with 4-bit weights share: over a panel's spans and units, for some rows of
// activations at once. What differs between sets of instructions is a class `Math`:
//
//   using Sum, Total, Vector    sums of a span, sums of all, 32 / kVectors float32
//   kVectors, kMostRows         vectors that a panel is wide; rows that registers hold
//   kUnits                      most units at once
//   Math(matrix, x)             tables
//   Sum Begin(row, span)        what a sum begins with
//   Units<R>(codes, unit, count, row, sums)   adds `count` times 8 rows of weights by R rows of
//                               activations
//   Total Add(total, sum, scale, row, span)
//
// Each file that includes this is compiled for other instructions: all of it is internal to it.
#ifndef PIPELAB_KERNELS_CPU_INT4_INT4_KERNEL_H_
#define PIPELAB_KERNELS_CPU_INT4_INT4_KERNEL_H_

#include <cstdint>

#include "kernels/cpu/int4/int4_call.h"
#include "kernels/simd.h"

namespace pipelab {
namespace cpu {
namespace {

// So far ahead codes are fetched into the first-level cache: about 1.5 us of 30 GB/s.
constexpr int64_t kAhead = 1024;  // int32

// y_R32 = x_RK by a panel; `y` has rows of `stride`.
template <class Math, int R>
PIPELAB_INLINE void PanelRows(const Math& math, const Int4Matrix& matrix, int64_t panel,
                              int64_t row, float* y, int64_t stride) {
  constexpr int kVectors = Math::kVectors;
  const Int4Shape& s = matrix.shape;
  const int64_t units = s.units(), units_of_span = s.span() / kInt4Rows;
  const int64_t spans_of_group = s.group <= s.span() ? 1 : s.spans();  // of a whole column
  const int32_t* codes = matrix.codes + panel * units * kInt4Columns;
  const BFloat16* const scales = matrix.scales + panel * s.groups() * kInt4Columns;
  typename Math::Vector totals[R][kVectors] = {};
  for (int64_t span = 0, begin = 0; begin < units; ++span, begin += units_of_span) {
    typename Math::Sum sums[R][kVectors];
#pragma GCC unroll 8
    for (int r = 0; r < R; ++r) {
#pragma GCC unroll 4
      for (int v = 0; v < kVectors; ++v) sums[r][v] = math.Begin(row + r, span);
    }
    const int64_t end = begin + units_of_span < units ? begin + units_of_span : units;
    for (int64_t unit = begin; unit < end; unit += Math::kUnits) {
      const int64_t count = end - unit < Math::kUnits ? end - unit : Math::kUnits;
      for (int64_t i = 0; i < count * kInt4Columns; i += kInt4Columns / 2) {
        __builtin_prefetch(codes + kAhead + i);
      }
      math.template Units<R>(codes, unit, count, row, sums);
      codes += count * kInt4Columns;
    }
    const BFloat16* const scale = scales + span / spans_of_group * kInt4Columns;
#pragma GCC unroll 4
    for (int v = 0; v < kVectors; ++v) {
      const auto factor = Math::Scale(scale + v * (kInt4Columns / kVectors));
#pragma GCC unroll 8
      for (int r = 0; r < R; ++r) {
        totals[r][v] = math.Add(totals[r][v], sums[r][v], factor, row + r, span);
      }
    }
  }
#pragma GCC unroll 8
  for (int r = 0; r < R; ++r) {
#pragma GCC unroll 4
    for (int v = 0; v < kVectors; ++v) {
      Math::Store(totals[r][v], y + r * stride + v * (kInt4Columns / kVectors));
    }
  }
}

// `rows` <= R of them.
template <class Math, int R>
void SomeRows(const Math& math, const Int4Matrix& matrix, int64_t panel, int64_t row, int64_t rows,
              float* y, int64_t stride) {
  if constexpr (R > 0) {
    if (rows == R) {
      PanelRows<Math, R>(math, matrix, panel, row, y, stride);
    } else {
      SomeRows<Math, R - 1>(math, matrix, panel, row, rows, y, stride);
    }
  }
}

template <class Math>
void RunPanels(const Int4Matrix& matrix, const Int4Activations& x, int64_t first_panel,
               int64_t last_panel, float* y_MN) {
  const Math math(matrix, x);
  const int64_t n = matrix.shape.n;
  for (int64_t panel = first_panel; panel < last_panel; ++panel) {
    const int64_t column = panel * kInt4Columns;
    const int64_t columns = n - column < kInt4Columns ? n - column : kInt4Columns;
    // The panel stays in the second-level cache for all rows.
    for (int64_t row = 0; row < x.m; row += Math::kMostRows) {
      const int64_t rows = x.m - row < Math::kMostRows ? x.m - row : Math::kMostRows;
      float* const y = y_MN + row * n + column;
      if (columns == kInt4Columns) {
        SomeRows<Math, Math::kMostRows>(math, matrix, panel, row, rows, y, n);
        continue;
      }
      float part[Math::kMostRows * kInt4Columns];
      SomeRows<Math, Math::kMostRows>(math, matrix, panel, row, rows, part, kInt4Columns);
      for (int64_t r = 0; r < rows; ++r) {
        for (int64_t c = 0; c < columns; ++c) y[r * n + c] = part[r * kInt4Columns + c];
      }
    }
  }
}

}  // namespace
}  // namespace cpu
}  // namespace pipelab

#endif  // PIPELAB_KERNELS_CPU_INT4_INT4_KERNEL_H_
