#include <algorithm>

#include "kernels/reference/functions.h"

namespace pipelab {
namespace reference {
namespace {

// Calls body(x index, w index, y index) for every product of the forward: y += x w.
template <class Body>
void ForEachProduct(const ConvolutionShape& s, Body body) {
  const int64_t oh = s.out_height(), ow = s.out_width();
  const int64_t inputs = s.depthwise ? 1 : s.in_channels;  // of one output channel
  for (int64_t n = 0; n < s.samples; ++n) {
    for (int64_t i = 0; i < oh; ++i) {
      for (int64_t j = 0; j < ow; ++j) {
        for (int64_t ki = 0; ki < s.kernel_height; ++ki) {
          for (int64_t kj = 0; kj < s.kernel_width; ++kj) {
            const int64_t row = i * s.stride_height + ki - s.pad_height;
            const int64_t column = j * s.stride_width + kj - s.pad_width;
            if (row < 0 || row >= s.height || column < 0 || column >= s.width) continue;
            const int64_t x = ((n * s.height + row) * s.width + column) * s.in_channels;
            const int64_t w = (ki * s.kernel_width + kj) * inputs * s.out_channels;
            const int64_t y = ((n * oh + i) * ow + j) * s.out_channels;
            for (int64_t c = 0; c < inputs; ++c) {
              for (int64_t o = 0; o < s.out_channels; ++o) {
                body(x + (s.depthwise ? o : c), w + c * s.out_channels + o, y + o);
              }
            }
          }
        }
      }
    }
  }
}

}  // namespace

void Convolution(const ConvolutionShape& shape, In x_NHWC, In w_HWIO, In b_O, Out y_NHWC) {
  for (size_t i = 0; i < y_NHWC.size(); ++i) {
    y_NHWC[i] = b_O.empty() ? 0 : b_O[i % shape.out_channels];
  }
  ForEachProduct(shape,
                 [&](int64_t x, int64_t w, int64_t y) { y_NHWC[y] += x_NHWC[x] * w_HWIO[w]; });
}

void ConvolutionInputGradient(const ConvolutionShape& shape, In dy_NHWC, In w_HWIO, Out dx_NHWC) {
  std::fill(dx_NHWC.begin(), dx_NHWC.end(), 0.0);
  ForEachProduct(shape,
                 [&](int64_t x, int64_t w, int64_t y) { dx_NHWC[x] += dy_NHWC[y] * w_HWIO[w]; });
}

void ConvolutionWeightGradient(const ConvolutionShape& shape, In x_NHWC, In dy_NHWC, Out dw_HWIO,
                               Out db_O) {
  ForEachProduct(shape,
                 [&](int64_t x, int64_t w, int64_t y) { dw_HWIO[w] += x_NHWC[x] * dy_NHWC[y]; });
  if (db_O.empty()) return;
  for (size_t i = 0; i < dy_NHWC.size(); ++i) db_O[i % shape.out_channels] += dy_NHWC[i];
}

}  // namespace reference
}  // namespace pipelab
