#include "kernels/cpu/batch_norm.h"

#include <algorithm>
#include <cmath>

#include "kernels/batch_norm_kernels.h"
#include "kernels/simd.h"

namespace pipelab {
namespace cpu {
namespace {

// Columns at a time: what is kept for each lies on the stack.
constexpr int64_t kColumns = 256;

// Rows whose sums are taken in float before they join the column's double. Such a part of a block
// stays in the first-level cache for a second pass.
constexpr int64_t kRows = 32;

PIPELAB_INLINE float Rstd(float variance) {
  return static_cast<float>(1 / std::sqrt(static_cast<double>(variance) + kBatchNormEpsilon));
}

}  // namespace

// Mean and sum of squares of parts of the rows, each around its own mean, joined in double (Chan,
// Golub and LeVeque 1983): x is read from memory once, and a large mean costs no digits.
PIPELAB_SIMD void BatchNormStatistics(const float* x, int64_t m, int64_t c, float* mean,
                                      float* variance) {
  double center[kColumns], squares[kColumns];
  float part_mean[kColumns], part_squares[kColumns];
  for (int64_t begin = 0; begin < c; begin += kColumns) {
    const int64_t width = std::min(kColumns, c - begin);
    std::fill_n(center, width, 0.0);
    std::fill_n(squares, width, 0.0);
    for (int64_t row = 0; row < m; row += kRows) {
      const int64_t rows = std::min(kRows, m - row);
      const float* part = x + row * c + begin;
      std::fill_n(part_mean, width, 0.0f);
      std::fill_n(part_squares, width, 0.0f);
      for (int64_t i = 0; i < rows; ++i) {
        const float* in = part + i * c;
#pragma omp simd
        for (int64_t j = 0; j < width; ++j) part_mean[j] += in[j];
      }
      const float inverse = 1.0f / static_cast<float>(rows);
#pragma omp simd
      for (int64_t j = 0; j < width; ++j) part_mean[j] *= inverse;
      for (int64_t i = 0; i < rows; ++i) {
        const float* in = part + i * c;
#pragma omp simd
        for (int64_t j = 0; j < width; ++j) {
          part_squares[j] += (in[j] - part_mean[j]) * (in[j] - part_mean[j]);
        }
      }
      const double share = static_cast<double>(rows) / static_cast<double>(row + rows);
      const double spread = share * static_cast<double>(row);
#pragma omp simd
      for (int64_t j = 0; j < width; ++j) {
        const double delta = static_cast<double>(part_mean[j]) - center[j];
        center[j] += delta * share;
        squares[j] += static_cast<double>(part_squares[j]) + delta * delta * spread;
      }
    }
    for (int64_t j = 0; j < width; ++j) {
      mean[begin + j] = static_cast<float>(center[j]);
      variance[begin + j] = static_cast<float>(squares[j] / static_cast<double>(m));
    }
  }
}

PIPELAB_SIMD void BatchNormApply(const float* x, const float* gamma, const float* beta,
                                 const float* mean, const float* variance, int64_t m, int64_t c,
                                 float* y) {
  float slope[kColumns];
  for (int64_t begin = 0; begin < c; begin += kColumns) {
    const int64_t width = std::min(kColumns, c - begin);
    const float *center = mean + begin, *shift = beta + begin;
    for (int64_t j = 0; j < width; ++j) slope[j] = gamma[begin + j] * Rstd(variance[begin + j]);
    for (int64_t i = 0; i < m; ++i) {
      const float* in = x + i * c + begin;
      float* out = y + i * c + begin;
#pragma omp simd
      for (int64_t j = 0; j < width; ++j) out[j] = (in[j] - center[j]) * slope[j] + shift[j];
    }
  }
}

PIPELAB_SIMD void BatchNormSums(const float* dy, const float* x, const float* mean,
                                const float* variance, int64_t m, int64_t c, float* dgamma,
                                float* dbeta) {
  double sum[kColumns], product[kColumns];
  float part_sum[kColumns], part_product[kColumns];
  for (int64_t begin = 0; begin < c; begin += kColumns) {
    const int64_t width = std::min(kColumns, c - begin);
    const float* center = mean + begin;
    std::fill_n(sum, width, 0.0);
    std::fill_n(product, width, 0.0);
    for (int64_t row = 0; row < m; row += kRows) {
      const int64_t rows = std::min(kRows, m - row);
      std::fill_n(part_sum, width, 0.0f);
      std::fill_n(part_product, width, 0.0f);
      for (int64_t i = row; i < row + rows; ++i) {
        const float *g = dy + i * c + begin, *in = x + i * c + begin;
#pragma omp simd
        for (int64_t j = 0; j < width; ++j) {
          part_sum[j] += g[j];
          part_product[j] += g[j] * (in[j] - center[j]);
        }
      }
#pragma omp simd
      for (int64_t j = 0; j < width; ++j) {
        sum[j] += static_cast<double>(part_sum[j]);
        product[j] += static_cast<double>(part_product[j]);
      }
    }
    for (int64_t j = 0; j < width; ++j) {
      dbeta[begin + j] = static_cast<float>(sum[j]);
      dgamma[begin + j] =
          static_cast<float>(product[j] * static_cast<double>(Rstd(variance[begin + j])));
    }
  }
}

PIPELAB_SIMD void BatchNormBackward(const float* dy, const float* x, const float* gamma,
                                    const float* mean, const float* variance, const float* dgamma,
                                    const float* dbeta, int64_t all, int64_t m, int64_t c,
                                    float* dx) {
  // dx = gamma rstd (dy - dbeta / all - (x - mean) rstd dgamma / all)
  float slope[kColumns], offset[kColumns], tilt[kColumns];
  const float inverse = 1.0f / static_cast<float>(all);
  for (int64_t begin = 0; begin < c; begin += kColumns) {
    const int64_t width = std::min(kColumns, c - begin);
    const float* center = mean + begin;
    for (int64_t j = 0; j < width; ++j) {
      const float rstd = Rstd(variance[begin + j]);
      slope[j] = gamma[begin + j] * rstd;
      offset[j] = dbeta[begin + j] * inverse;
      tilt[j] = rstd * dgamma[begin + j] * inverse;
    }
    for (int64_t i = 0; i < m; ++i) {
      const float *g = dy + i * c + begin, *in = x + i * c + begin;
      float* out = dx + i * c + begin;
#pragma omp simd
      for (int64_t j = 0; j < width; ++j) {
        out[j] = slope[j] * (g[j] - offset[j] - (in[j] - center[j]) * tilt[j]);
      }
    }
  }
}

void BatchNormUpdateRunning(const float* statistics, int64_t micro_batches,
                            absl::Span<const int64_t> rows, int64_t c, float momentum,
                            float* running_mean, float* running_variance) {
  const double rate = momentum;
  const auto weight = [&](int64_t b) { return rows.empty() ? 1 : static_cast<double>(rows[b]); };
  double all = 0;
  for (int64_t b = 0; b < micro_batches; ++b) all += weight(b);
  for (int64_t j = 0; j < c; ++j) {
    double mean = 0, variance = 0;
    for (int64_t b = 0; b < micro_batches; ++b) mean += weight(b) / all * statistics[2 * b * c + j];
    for (int64_t b = 0; b < micro_batches; ++b) {
      const double d = statistics[2 * b * c + j] - mean;
      variance += weight(b) / all * (statistics[(2 * b + 1) * c + j] + d * d);
    }
    running_mean[j] += static_cast<float>(rate * (mean - running_mean[j]));
    running_variance[j] += static_cast<float>(rate * (variance - running_variance[j]));
  }
}

}  // namespace cpu
}  // namespace pipelab
