#include "kernels/cpu/elementwise.h"

#include "kernels/cpu/simd.h"

namespace pipelab {
namespace cpu {
namespace {

// 0.5 (1 + tanh u) = 1 / (1 + e^-2u), so GELU needs one exponential and one division.
constexpr float kTwiceSlope = 2 * 0.797884561f;  // 2 sqrt(2 / pi)
constexpr float kCubic = 0.044715f;

PIPELAB_INLINE float GeluGate(float x) {
  float z = kTwiceSlope * (x + kCubic * x * x * x);
  // Below -40 the gate is 4e-18 at most, nothing beside 1; going on would end in denormals, which
  // are slow.
  z = z < -40.0f ? -40.0f : z;
  return 1.0f / (1.0f + FastExp(-z));
}

}  // namespace

PIPELAB_SIMD void GeluForward(const float* x, int64_t n, float* y) {
#pragma omp simd
  for (int64_t i = 0; i < n; ++i) y[i] = x[i] * GeluGate(x[i]);
}

PIPELAB_SIMD void GeluBackward(const float* dy, const float* x, int64_t n, float* dx) {
#pragma omp simd
  for (int64_t i = 0; i < n; ++i) {
    const float gate = GeluGate(x[i]);
    const float inner = kTwiceSlope * (x[i] + 3 * kCubic * x[i] * x[i] * x[i]);
    dx[i] = dy[i] * gate * (1.0f + inner * (1.0f - gate));
  }
}

PIPELAB_SIMD void ReluForward(const float* x, int64_t n, float* y) {
#pragma omp simd
  for (int64_t i = 0; i < n; ++i) y[i] = x[i] < 0 ? 0 : x[i];
}

PIPELAB_SIMD void ReluBackward(const float* dy, const float* y, int64_t n, float* dx) {
#pragma omp simd
  for (int64_t i = 0; i < n; ++i) dx[i] = y[i] <= 0 ? 0 : dy[i];
}

PIPELAB_SIMD void AddScaled(float factor, const float* x, int64_t n, float* y) {
#pragma omp simd
  for (int64_t i = 0; i < n; ++i) y[i] += factor * x[i];
}

PIPELAB_SIMD void AddVectors(const float* a, const float* b, int64_t n, float* y) {
#pragma omp simd
  for (int64_t i = 0; i < n; ++i) y[i] = a[i] + b[i];
}

PIPELAB_SIMD void AddBias(const float* b_N, int64_t m, int64_t n, float* y_MN) {
  for (int64_t i = 0; i < m; ++i) {
    float* row = y_MN + i * n;
#pragma omp simd
    for (int64_t j = 0; j < n; ++j) row[j] += b_N[j];
  }
}

PIPELAB_SIMD void AddColumnSums(const float* x_MN, int64_t m, int64_t n, float* sum_N) {
  // Eight rows at a time: the sums are then read and written once for eight rows.
  int64_t i = 0;
  for (; i + 8 <= m; i += 8) {
    const float* x = x_MN + i * n;
#pragma omp simd
    for (int64_t j = 0; j < n; ++j) {
      const float* c = x + j;
      sum_N[j] +=
          ((c[0] + c[n]) + (c[2 * n] + c[3 * n])) + ((c[4 * n] + c[5 * n]) + (c[6 * n] + c[7 * n]));
    }
  }
  for (; i < m; ++i) {
    const float* x = x_MN + i * n;
#pragma omp simd
    for (int64_t j = 0; j < n; ++j) sum_N[j] += x[j];
  }
}

}  // namespace cpu
}  // namespace pipelab
