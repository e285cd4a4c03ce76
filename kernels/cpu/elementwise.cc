#include "kernels/cpu/elementwise.h"

#include <cmath>

#include "kernels/simd.h"

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

// (1 + erf(x / sqrt(2))) / 2, which keeps its digits where it is small.
static float ExactGate(float x) { return 0.5f * std::erfc(-0.707106781f * x); }

void ExactGeluForward(const float* x, int64_t n, float* y) {
  for (int64_t i = 0; i < n; ++i) y[i] = x[i] * ExactGate(x[i]);
}

void ExactGeluBackward(const float* dy, const float* x, int64_t n, float* dx) {
  constexpr float kDensityAtZero = 0.398942280f;
  for (int64_t i = 0; i < n; ++i) {
    const float density = kDensityAtZero * std::exp(-0.5f * x[i] * x[i]);
    dx[i] = dy[i] * (ExactGate(x[i]) + x[i] * density);
  }
}

namespace {

// 1 / (1 + e^-x); below -40 as in GeluGate.
PIPELAB_INLINE float SwishGate(float x) {
  const float z = x < -40.0f ? -40.0f : x;
  return 1.0f / (1.0f + FastExp(-z));
}

}  // namespace

PIPELAB_SIMD void GateForward(GateKind kind, const float* gu, int64_t m, int64_t f, float* y) {
  for (int64_t i = 0; i < m; ++i, gu += 2 * f, y += f) {
    const float* u = gu + f;
    if (kind == GateKind::kSwish) {
#pragma omp simd
      for (int64_t j = 0; j < f; ++j) y[j] = gu[j] * SwishGate(gu[j]) * u[j];
    } else {
#pragma omp simd
      for (int64_t j = 0; j < f; ++j) y[j] = gu[j] * GeluGate(gu[j]) * u[j];
    }
  }
}

// The gradient of g, by its gate s: u (s + g s (1 - s) z'), with the gate's argument z.
PIPELAB_SIMD void GateBackward(GateKind kind, const float* dy, const float* gu, int64_t m,
                               int64_t f, float* dgu) {
  for (int64_t i = 0; i < m; ++i, gu += 2 * f, dgu += 2 * f, dy += f) {
    const float* u = gu + f;
    float* du = dgu + f;
    if (kind == GateKind::kSwish) {
#pragma omp simd
      for (int64_t j = 0; j < f; ++j) {
        const float g = gu[j], gate = SwishGate(g), value = u[j];
        dgu[j] = dy[j] * value * gate * (1.0f + g * (1.0f - gate));
        du[j] = dy[j] * g * gate;
      }
    } else {
#pragma omp simd
      for (int64_t j = 0; j < f; ++j) {
        const float g = gu[j], gate = GeluGate(g), value = u[j];
        const float inner = kTwiceSlope * (g + 3 * kCubic * g * g * g);
        dgu[j] = dy[j] * value * gate * (1.0f + inner * (1.0f - gate));
        du[j] = dy[j] * g * gate;
      }
    }
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

PIPELAB_SIMD void RotateHeads(const float* turns, bool back, int64_t tokens, int64_t heads,
                              int64_t head_size, int64_t head_stride, int64_t columns, float* x) {
  const int64_t half = head_size / 2;
  const float sign = back ? -1.0f : 1.0f;
  for (int64_t token = 0; token < tokens; ++token, turns += head_size, x += columns) {
    const float *cosine = turns, *sine = turns + half;
    for (int64_t head = 0; head < heads; ++head) {
      float *a = x + head * head_stride, *b = a + half;
#pragma omp simd
      for (int64_t j = 0; j < half; ++j) {
        const float c = cosine[j], s = sign * sine[j], first = a[j], second = b[j];
        a[j] = first * c - second * s;
        b[j] = first * s + second * c;
      }
    }
  }
}

}  // namespace cpu
}  // namespace pipelab
