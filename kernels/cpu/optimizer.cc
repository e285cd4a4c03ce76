#include "kernels/cpu/optimizer.h"

#include <cmath>

#include "kernels/simd.h"

namespace pipelab {
namespace cpu {

PIPELAB_SIMD void AdamStep(const AdamOptions& options, const float* dw, int64_t n, float* w,
                           float* m, float* v) {
  const float beta1 = options.beta1, beta2 = options.beta2;
  const double step = static_cast<double>(options.step);
  // m^ = m / (1 - beta1^t) and v^ = v / (1 - beta2^t), folded into the rate and into v's root.
  const float rate =
      static_cast<float>(options.learning_rate / (1 - std::pow(double{beta1}, step)));
  const float root_scale = static_cast<float>(1 / std::sqrt(1 - std::pow(double{beta2}, step)));
  const float decay = static_cast<float>(double{options.learning_rate} * options.weight_decay);
  const float epsilon = options.epsilon;
#pragma omp simd
  for (int64_t i = 0; i < n; ++i) {
    const float g = dw[i];
    m[i] = beta1 * m[i] + (1 - beta1) * g;
    v[i] = beta2 * v[i] + (1 - beta2) * g * g;
    w[i] -= rate * m[i] / (__builtin_sqrtf(v[i]) * root_scale + epsilon) + decay * w[i];
  }
}

PIPELAB_SIMD void SgdStep(const SgdOptions& options, const float* dw, int64_t n, float* w,
                          float* velocity) {
  const float rate = options.learning_rate, decay = options.weight_decay;
  if (velocity == nullptr) {
#pragma omp simd
    for (int64_t i = 0; i < n; ++i) w[i] -= rate * (dw[i] + decay * w[i]);
    return;
  }
  const float momentum = options.momentum;
  // The step is g + momentum u with Nesterov and u without: one loop, two factors.
  const float from_g = options.nesterov ? 1 : 0, from_u = options.nesterov ? momentum : 1;
#pragma omp simd
  for (int64_t i = 0; i < n; ++i) {
    const float g = dw[i] + decay * w[i];
    const float u = momentum * velocity[i] + g;
    velocity[i] = u;
    w[i] -= rate * (from_g * g + from_u * u);
  }
}

PIPELAB_SIMD void RmsPropStep(const RmsPropOptions& options, const float* dw, int64_t n, float* w,
                              float* squares, float* velocity) {
  const float rate = options.learning_rate, weight_decay = options.weight_decay;
  const float decay = options.decay, momentum = options.momentum;
  // sqrt(s + inside) + outside, one of them zero.
  const float inside = options.epsilon_inside_root ? options.epsilon : 0;
  const float outside = options.epsilon_inside_root ? 0 : options.epsilon;
  if (velocity == nullptr) {
#pragma omp simd
    for (int64_t i = 0; i < n; ++i) {
      const float g = dw[i] + weight_decay * w[i];
      squares[i] = decay * squares[i] + (1 - decay) * g * g;
      w[i] -= rate * (g / (__builtin_sqrtf(squares[i] + inside) + outside));
    }
    return;
  }
#pragma omp simd
  for (int64_t i = 0; i < n; ++i) {
    const float g = dw[i] + weight_decay * w[i];
    squares[i] = decay * squares[i] + (1 - decay) * g * g;
    velocity[i] = momentum * velocity[i] + g / (__builtin_sqrtf(squares[i] + inside) + outside);
    w[i] -= rate * velocity[i];
  }
}

PIPELAB_SIMD double SumOfSquares(const float* x, int64_t n) {
  double sum = 0;
#pragma omp simd reduction(+ : sum)
  for (int64_t i = 0; i < n; ++i) sum += static_cast<double>(x[i]) * static_cast<double>(x[i]);
  return sum;
}

PIPELAB_SIMD void ScaleVector(float factor, int64_t n, float* x) {
#pragma omp simd
  for (int64_t i = 0; i < n; ++i) x[i] *= factor;
}

}  // namespace cpu
}  // namespace pipelab
