// Steps of optimizers: kernels/cpu/optimizer.cc, element for element.
#include <cmath>

#include "kernels/cuda/functions.h"
#include "kernels/cuda/launch.h"
#include "kernels/cuda/sums.h"

namespace pipelab {
namespace gpu {

void Adam(Queue& queue, const AdamNumbers& numbers, const float* dw, int64_t n, float* w, float* m,
          float* v) {
  const AdamNumbers a = numbers;
  ForEach(queue, "Adam", n, [=] PIPELAB_DEVICE(int64_t i) {
    const float g = dw[i];
    const float first = a.beta1 * m[i] + (1.0f - a.beta1) * g;
    const float second = a.beta2 * v[i] + (1.0f - a.beta2) * g * g;
    m[i] = first;
    v[i] = second;
    w[i] -= a.rate * first / (sqrtf(second) * a.root_scale + a.epsilon) + a.decay * w[i];
  });
}

void Sgd(Queue& queue, const SgdNumbers& numbers, const float* dw, int64_t n, float* w,
         float* velocity) {
  const SgdNumbers s = numbers;
  ForEach(queue, "Sgd", n, [=] PIPELAB_DEVICE(int64_t i) {
    const float g = dw[i] + s.decay * w[i];
    float step = g;
    if (velocity != nullptr) {
      const float u = s.momentum * velocity[i] + g;
      velocity[i] = u;
      step = s.nesterov ? g + s.momentum * u : u;
    }
    w[i] -= s.rate * step;
  });
}

void RmsProp(Queue& queue, const RmsPropNumbers& numbers, const float* dw, int64_t n, float* w,
             float* squares, float* velocity) {
  const RmsPropNumbers r = numbers;
  ForEach(queue, "RmsProp", n, [=] PIPELAB_DEVICE(int64_t i) {
    const float g = dw[i] + r.weight_decay * w[i];
    const float square = r.decay * squares[i] + (1.0f - r.decay) * g * g;
    squares[i] = square;
    float step = g / (sqrtf(square + r.inside) + r.outside);
    if (velocity != nullptr) velocity[i] = step = r.momentum * velocity[i] + step;
    w[i] -= r.rate * step;
  });
}

void SumOfSquares(Queue& queue, const float* x, int64_t n, double* result) {
  double* const parts = static_cast<double*>(queue.Scratch(kMostParts * 8));
  if (parts == nullptr) return;
  SumOf(
      queue, "SumOfSquares", n,
      [=] PIPELAB_DEVICE(int64_t i) { return static_cast<double>(x[i]) * x[i]; }, parts, result);
}

}  // namespace gpu
}  // namespace pipelab
