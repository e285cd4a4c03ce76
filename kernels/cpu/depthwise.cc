#include "kernels/cpu/depthwise.h"

#include "kernels/simd.h"

namespace pipelab {
namespace cpu {

PIPELAB_SIMD void DepthwiseWeightGradient(const ConvolutionShape& s, const float* x,
                                          const float* dy, float* dw) {
  const int64_t c = s.out_channels, oh = s.out_height(), ow = s.out_width();
  for (int64_t n = 0; n < s.samples; ++n) {
    for (int64_t i = 0; i < oh; ++i) {
      for (int64_t ki = 0; ki < s.kernel_height; ++ki) {
        const int64_t row = i * s.stride_height + ki - s.pad_height;
        if (row < 0 || row >= s.height) continue;
        for (int64_t kj = 0; kj < s.kernel_width; ++kj) {
          float* w = dw + (ki * s.kernel_width + kj) * c;
          for (int64_t j = 0; j < ow; ++j) {
            const int64_t column = j * s.stride_width + kj - s.pad_width;
            if (column < 0 || column >= s.width) continue;
            const float* in = x + ((n * s.height + row) * s.width + column) * c;
            const float* out = dy + ((n * oh + i) * ow + j) * c;
#pragma omp simd
            for (int64_t l = 0; l < c; ++l) w[l] += in[l] * out[l];
          }
        }
      }
    }
  }
}

}  // namespace cpu
}  // namespace pipelab
