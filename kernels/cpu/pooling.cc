#include "kernels/cpu/pooling.h"

#include <algorithm>
#include <limits>

#include "kernels/simd.h"

namespace pipelab {
namespace cpu {
namespace {

constexpr float kLowest = -std::numeric_limits<float>::infinity();

// Elements of y whose maximum and its place are kept on the stack at a time.
constexpr int64_t kElements = 1024;

// The output rows or columns [begin, end) for which tap k of the kernel lies inside the image.
struct Range {
  int64_t begin, end;
};
PIPELAB_INLINE Range Inside(int64_t k, int64_t pad, int64_t stride, int64_t size, int64_t outputs) {
  const int64_t offset = k - pad;  // of the input beside stride * output
  const int64_t begin = offset >= 0 ? 0 : (-offset + stride - 1) / stride;
  const int64_t end = size - offset <= 0 ? 0 : (size - offset - 1) / stride + 1;
  return {begin, std::min(end, outputs)};
}

// Calls body(x offset, y offset, length, tap) for each tap of the kernel and the runs of a row of
// outputs that it meets, in floats: offset of x in its image, of y in the row. Neighbouring outputs
// see neighbouring pixels where the stride is 1, so that a run is many pixels of all channels: long
// vectors, however few the channels. Only outputs [first, last) and channels [c, c + width).
template <class Body>
PIPELAB_INLINE void ForEachRun(const PoolingShape& s, int64_t i, int64_t first, int64_t last,
                               int64_t c, int64_t width, Body body) {
  for (int64_t ki = 0; ki < s.kernel_height; ++ki) {
    const int64_t row = i * s.stride_height + ki - s.pad_height;
    if (row < 0 || row >= s.height) continue;
    for (int64_t kj = 0; kj < s.kernel_width; ++kj) {
      const Range inside = Inside(kj, s.pad_width, s.stride_width, s.width, s.out_width());
      const int64_t begin = std::max(inside.begin, first), end = std::min(inside.end, last);
      if (begin >= end) continue;
      const bool joined = s.stride_width == 1 && width == s.channels;
      const int64_t pixels = joined ? end - begin : 1;
      for (int64_t j = begin; j < end; j += pixels) {
        const int64_t column = j * s.stride_width + kj - s.pad_width;
        body((row * s.width + column) * s.channels + c, j * s.channels + c, pixels * width,
             static_cast<int32_t>(ki * s.kernel_width + kj));
      }
    }
  }
}

PIPELAB_INLINE float AverageFactor(const PoolingShape& s, int64_t i, int64_t j) {
  if (s.count_padding) return 1.0f / static_cast<float>(s.kernel_height * s.kernel_width);
  const auto inside = [](int64_t begin, int64_t kernel, int64_t size) {
    return std::min(begin + kernel, size) - std::max<int64_t>(begin, 0);
  };
  return 1.0f /
         static_cast<float>(inside(i * s.stride_height - s.pad_height, s.kernel_height, s.height) *
                            inside(j * s.stride_width - s.pad_width, s.kernel_width, s.width));
}

}  // namespace

PIPELAB_SIMD void MaxPoolForward(const PoolingShape& s, const float* x, float* y) {
  const int64_t oh = s.out_height(), ow = s.out_width(), c = s.channels;
  for (int64_t n = 0; n < s.samples; ++n, x += s.height * s.width * c) {
    for (int64_t i = 0; i < oh; ++i, y += ow * c) {
      std::fill_n(y, ow * c, kLowest);
      ForEachRun(s, i, 0, ow, 0, c, [&](int64_t from, int64_t to, int64_t length, int32_t) {
        const float* in = x + from;
        float* out = y + to;
#pragma omp simd
        for (int64_t l = 0; l < length; ++l) {
          const float v = in[l], most = out[l];
          out[l] = ((v > most) | (v != v)) ? v : most;
        }
      });
    }
  }
}

PIPELAB_SIMD void MaxPoolBackward(const PoolingShape& s, const float* dy, const float* x,
                                  float* dx) {
  const int64_t oh = s.out_height(), ow = s.out_width(), c = s.channels;
  const int64_t width = std::min(c, kElements), pixels = kElements / width;
  std::fill_n(dx, s.samples * s.height * s.width * c, 0.0f);
  float best[kElements];
  int32_t at[kElements];  // the tap that holds the maximum; -1 before there is one
  for (int64_t n = 0; n < s.samples; ++n, x += s.height * s.width * c) {
    for (int64_t i = 0; i < oh; ++i, dy += ow * c) {
      for (int64_t j = 0; j < ow; j += pixels) {
        for (int64_t begin = 0; begin < c; begin += width) {
          const int64_t last = std::min(j + pixels, ow), channels = std::min(width, c - begin);
          const int64_t origin = j * c + begin;  // where the arrays start in the row
          std::fill_n(best, (last - j) * channels, kLowest);
          std::fill_n(at, (last - j) * channels, -1);
          ForEachRun(s, i, j, last, begin, channels,
                     [&](int64_t from, int64_t to, int64_t length, int32_t tap) {
                       const float* in = x + from;
                       float* most = best + (to - origin);
                       int32_t* where = at + (to - origin);
#pragma omp simd
                       for (int64_t l = 0; l < length; ++l) {
                         const float v = in[l], m = most[l];
                         const bool better = (v > m) | (where[l] < 0) | ((v != v) & (m == m));
                         most[l] = better ? v : m;
                         where[l] = better ? tap : where[l];
                       }
                     });
          ForEachRun(s, i, j, last, begin, channels,
                     [&](int64_t from, int64_t to, int64_t length, int32_t tap) {
                       float* out = dx + n * s.height * s.width * c + from;
                       const float* g = dy + to;
                       const int32_t* where = at + (to - origin);
#pragma omp simd
                       for (int64_t l = 0; l < length; ++l) {
                         out[l] += where[l] == tap ? g[l] : 0.0f;
                       }
                     });
        }
      }
    }
  }
}

PIPELAB_SIMD void AveragePoolForward(const PoolingShape& s, const float* x, float* y) {
  const int64_t oh = s.out_height(), ow = s.out_width(), c = s.channels;
  for (int64_t n = 0; n < s.samples; ++n, x += s.height * s.width * c) {
    for (int64_t i = 0; i < oh; ++i, y += ow * c) {
      std::fill_n(y, ow * c, 0.0f);
      ForEachRun(s, i, 0, ow, 0, c, [&](int64_t from, int64_t to, int64_t length, int32_t) {
        const float* in = x + from;
        float* out = y + to;
#pragma omp simd
        for (int64_t l = 0; l < length; ++l) out[l] += in[l];
      });
      for (int64_t j = 0; j < ow; ++j) {
        const float factor = AverageFactor(s, i, j);
        float* out = y + j * c;
#pragma omp simd
        for (int64_t l = 0; l < c; ++l) out[l] *= factor;
      }
    }
  }
}

PIPELAB_SIMD void AveragePoolBackward(const PoolingShape& s, const float* dy, float* dx) {
  const int64_t oh = s.out_height(), ow = s.out_width(), c = s.channels;
  const int64_t width = std::min(c, kElements), pixels = kElements / width;
  std::fill_n(dx, s.samples * s.height * s.width * c, 0.0f);
  float part[kElements];
  for (int64_t n = 0; n < s.samples; ++n, dx += s.height * s.width * c) {
    for (int64_t i = 0; i < oh; ++i, dy += ow * c) {
      for (int64_t j = 0; j < ow; j += pixels) {
        for (int64_t begin = 0; begin < c; begin += width) {
          const int64_t last = std::min(j + pixels, ow), channels = std::min(width, c - begin);
          const int64_t origin = j * c + begin;
          for (int64_t k = j; k < last; ++k) {
            const float factor = AverageFactor(s, i, k);
            const float* g = dy + k * c + begin;
            float* out = part + (k - j) * channels;
#pragma omp simd
            for (int64_t l = 0; l < channels; ++l) out[l] = factor * g[l];
          }
          ForEachRun(s, i, j, last, begin, channels,
                     [&](int64_t from, int64_t to, int64_t length, int32_t) {
                       const float* g = part + (to - origin);
                       float* out = dx + from;
#pragma omp simd
                       for (int64_t l = 0; l < length; ++l) out[l] += g[l];
                     });
        }
      }
    }
  }
}

}  // namespace cpu
}  // namespace pipelab
