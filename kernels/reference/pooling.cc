#include <algorithm>
#include <cmath>

#include "kernels/reference/functions.h"

namespace pipelab {
namespace reference {
namespace {

// Calls body(y index, tap(visit)) for every element of y, where tap(visit) calls visit(x index) for
// every pixel of its window, row by row.
template <class Body>
void ForEachWindow(const PoolingShape& s, Body body) {
  const int64_t oh = s.out_height(), ow = s.out_width();
  for (int64_t y = 0; y < s.samples * oh * ow * s.channels; ++y) {
    const int64_t c = y % s.channels, j = y / s.channels % ow;
    const int64_t i = y / s.channels / ow % oh, n = y / s.channels / ow / oh;
    body(y, [&](auto visit) {
      for (int64_t ki = 0; ki < s.kernel_height; ++ki) {
        for (int64_t kj = 0; kj < s.kernel_width; ++kj) {
          const int64_t row = i * s.stride_height + ki - s.pad_height;
          const int64_t column = j * s.stride_width + kj - s.pad_width;
          if (row < 0 || row >= s.height || column < 0 || column >= s.width) continue;
          visit(((n * s.height + row) * s.width + column) * s.channels + c);
        }
      }
    });
  }
}

// Where the window's maximum is, the first one; a NaN beats everything.
template <class Taps>
int64_t ArgMax(In x, const Taps& taps) {
  int64_t at = -1;
  taps([&](int64_t i) {
    if (at < 0 || x[i] > x[at] || (std::isnan(x[i]) && !std::isnan(x[at]))) at = i;
  });
  return at;
}

template <class Taps>
double Divisor(const PoolingShape& s, const Taps& taps) {
  int64_t inside = 0;
  taps([&](int64_t) { ++inside; });
  return static_cast<double>(s.count_padding ? s.kernel_height * s.kernel_width : inside);
}

}  // namespace

void MaxPool(const PoolingShape& shape, In x_NHWC, Out y_NHWC) {
  ForEachWindow(shape, [&](int64_t y, auto taps) { y_NHWC[y] = x_NHWC[ArgMax(x_NHWC, taps)]; });
}

void MaxPoolGradient(const PoolingShape& shape, In dy_NHWC, In x_NHWC, Out dx_NHWC) {
  std::fill(dx_NHWC.begin(), dx_NHWC.end(), 0.0);
  ForEachWindow(shape, [&](int64_t y, auto taps) { dx_NHWC[ArgMax(x_NHWC, taps)] += dy_NHWC[y]; });
}

void AveragePool(const PoolingShape& shape, In x_NHWC, Out y_NHWC) {
  ForEachWindow(shape, [&](int64_t y, auto taps) {
    double sum = 0;
    taps([&](int64_t i) { sum += x_NHWC[i]; });
    y_NHWC[y] = sum / Divisor(shape, taps);
  });
}

void AveragePoolGradient(const PoolingShape& shape, In dy_NHWC, Out dx_NHWC) {
  std::fill(dx_NHWC.begin(), dx_NHWC.end(), 0.0);
  ForEachWindow(shape, [&](int64_t y, auto taps) {
    const double part = dy_NHWC[y] / Divisor(shape, taps);
    taps([&](int64_t i) { dx_NHWC[i] += part; });
  });
}

}  // namespace reference
}  // namespace pipelab
