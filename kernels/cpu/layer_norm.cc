#include <cmath>
#include <cstdint>

#include "kernels/cpu/rows.h"
#include "kernels/simd.h"

namespace pipelab {
namespace cpu {

PIPELAB_SIMD void LayerNormForward(const float* x, const float* gamma, const float* beta, int64_t m,
                                   int64_t c, float* y, float* mean, float* rstd) {
  const float inverse = 1.0f / static_cast<float>(c);
  for (int64_t i = 0; i < m; ++i, x += c, y += c) {
    float sum = 0;
#pragma omp simd reduction(+ : sum)
    for (int64_t j = 0; j < c; ++j) sum += x[j];
    const float center = sum * inverse;
    // A second pass rather than E[x^2] - mean^2: rows with a large mean would lose all digits.
    float squares = 0;
#pragma omp simd reduction(+ : squares)
    for (int64_t j = 0; j < c; ++j) squares += (x[j] - center) * (x[j] - center);
    const float r = 1.0f / std::sqrt(squares * inverse + 1e-5f);
#pragma omp simd
    for (int64_t j = 0; j < c; ++j) y[j] = (x[j] - center) * r * gamma[j] + beta[j];
    mean[i] = center;
    rstd[i] = r;
  }
}

PIPELAB_SIMD void LayerNormBackward(const float* dy, const float* x, const float* gamma,
                                    const float* mean, const float* rstd, int64_t m, int64_t c,
                                    float* dx) {
  const float inverse = 1.0f / static_cast<float>(c);
  for (int64_t i = 0; i < m; ++i, dy += c, x += c, dx += c) {
    const float center = mean[i], r = rstd[i];
    float g_sum = 0, gx_sum = 0;
#pragma omp simd reduction(+ : g_sum, gx_sum)
    for (int64_t j = 0; j < c; ++j) {
      const float g = dy[j] * gamma[j];
      g_sum += g;
      gx_sum += g * ((x[j] - center) * r);
    }
    const float g_mean = g_sum * inverse, gx_mean = gx_sum * inverse;
#pragma omp simd
    for (int64_t j = 0; j < c; ++j) {
      dx[j] = r * (dy[j] * gamma[j] - g_mean - (x[j] - center) * r * gx_mean);
    }
  }
}

PIPELAB_SIMD void LayerNormWeights(const float* dy, const float* x, const float* mean,
                                   const float* rstd, int64_t m, int64_t c, float* dgamma,
                                   float* dbeta) {
  // Four rows at a time: the sums are then read and written once for four rows.
  int64_t i = 0;
  for (; i + 4 <= m; i += 4, dy += 4 * c, x += 4 * c) {
    const float m0 = mean[i], m1 = mean[i + 1], m2 = mean[i + 2], m3 = mean[i + 3];
    const float r0 = rstd[i], r1 = rstd[i + 1], r2 = rstd[i + 2], r3 = rstd[i + 3];
#pragma omp simd
    for (int64_t j = 0; j < c; ++j) {
      const float d0 = dy[j], d1 = dy[c + j], d2 = dy[2 * c + j], d3 = dy[3 * c + j];
      dgamma[j] += (d0 * ((x[j] - m0) * r0) + d1 * ((x[c + j] - m1) * r1)) +
                   (d2 * ((x[2 * c + j] - m2) * r2) + d3 * ((x[3 * c + j] - m3) * r3));
      dbeta[j] += (d0 + d1) + (d2 + d3);
    }
  }
  for (; i < m; ++i, dy += c, x += c) {
    const float center = mean[i], r = rstd[i];
#pragma omp simd
    for (int64_t j = 0; j < c; ++j) {
      dgamma[j] += dy[j] * ((x[j] - center) * r);
      dbeta[j] += dy[j];
    }
  }
}

PIPELAB_SIMD void RmsNormForward(const float* x, const float* gamma, int64_t m, int64_t c, float* y,
                                 float* rstd) {
  const float inverse = 1.0f / static_cast<float>(c);
  for (int64_t i = 0; i < m; ++i, x += c, y += c) {
    float squares = 0;
#pragma omp simd reduction(+ : squares)
    for (int64_t j = 0; j < c; ++j) squares += x[j] * x[j];
    const float r = 1.0f / std::sqrt(squares * inverse + 1e-5f);
#pragma omp simd
    for (int64_t j = 0; j < c; ++j) y[j] = x[j] * r * gamma[j];
    rstd[i] = r;
  }
}

PIPELAB_SIMD void RmsNormBackward(const float* dy, const float* x, const float* gamma,
                                  const float* rstd, int64_t m, int64_t c, float* dx) {
  const float inverse = 1.0f / static_cast<float>(c);
  for (int64_t i = 0; i < m; ++i, dy += c, x += c, dx += c) {
    const float r = rstd[i];
    float gx_sum = 0;
#pragma omp simd reduction(+ : gx_sum)
    for (int64_t j = 0; j < c; ++j) gx_sum += dy[j] * gamma[j] * (x[j] * r);
    const float gx_mean = gx_sum * inverse;
#pragma omp simd
    for (int64_t j = 0; j < c; ++j) dx[j] = r * (dy[j] * gamma[j] - x[j] * r * gx_mean);
  }
}

PIPELAB_SIMD void RmsNormWeights(const float* dy, const float* x, const float* rstd, int64_t m,
                                 int64_t c, float* dgamma) {
  // Four rows at a time, as above.
  int64_t i = 0;
  for (; i + 4 <= m; i += 4, dy += 4 * c, x += 4 * c) {
    const float r0 = rstd[i], r1 = rstd[i + 1], r2 = rstd[i + 2], r3 = rstd[i + 3];
#pragma omp simd
    for (int64_t j = 0; j < c; ++j) {
      dgamma[j] += (dy[j] * (x[j] * r0) + dy[c + j] * (x[c + j] * r1)) +
                   (dy[2 * c + j] * (x[2 * c + j] * r2) + dy[3 * c + j] * (x[3 * c + j] * r3));
    }
  }
  for (; i < m; ++i, dy += c, x += c) {
    const float r = rstd[i];
#pragma omp simd
    for (int64_t j = 0; j < c; ++j) dgamma[j] += dy[j] * (x[j] * r);
  }
}

}  // namespace cpu
}  // namespace pipelab
