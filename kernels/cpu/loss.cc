#include "kernels/cpu/loss.h"

#include <algorithm>
#include <cmath>

#include "kernels/simd.h"

namespace pipelab {
namespace cpu {

PIPELAB_SIMD double SquaredErrorForward(const float* y, const float* targets, int64_t n) {
  double sum = 0;
#pragma omp simd reduction(+ : sum)
  for (int64_t i = 0; i < n; ++i) {
    const double d = static_cast<double>(y[i]) - static_cast<double>(targets[i]);
    sum += d * d;
  }
  return sum;
}

PIPELAB_SIMD void SquaredErrorBackward(const float* y, const float* targets, float scale, int64_t n,
                                       float* dy) {
  const float twice = 2 * scale;
#pragma omp simd
  for (int64_t i = 0; i < n; ++i) dy[i] = twice * (y[i] - targets[i]);
}

double BinaryCrossEntropyForward(const float* logits, const float* targets, int64_t n) {
  // log(1 + e^z) = max(z, 0) + log(1 + e^-|z|), which cannot overflow. A NaN fails every
  // comparison, so the maximum is written to keep it.
  double sum = 0;
  for (int64_t i = 0; i < n; ++i) {
    const double z = logits[i];
    sum += (z < 0 ? 0 : z) - targets[i] * z + std::log1p(std::exp(-std::abs(z)));
  }
  return sum;
}

PIPELAB_SIMD void BinaryCrossEntropyBackward(const float* logits, const float* targets, float scale,
                                             int64_t n, float* dlogits) {
#pragma omp simd
  for (int64_t i = 0; i < n; ++i) {
    // FastExp stops at 2^127.5, so the sigmoid of a very negative logit is 0 and not NaN.
    dlogits[i] = scale * (1.0f / (1.0f + FastExp(-logits[i])) - targets[i]);
  }
}

}  // namespace cpu
}  // namespace pipelab
