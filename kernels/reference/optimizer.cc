#include <cmath>

#include "kernels/reference/functions.h"

namespace pipelab {
namespace reference {

void Adam(const AdamOptions& options, In dw, Out w, Out m, Out v) {
  const double beta1 = options.beta1, beta2 = options.beta2, rate = options.learning_rate;
  const double step = static_cast<double>(options.step);
  for (size_t i = 0; i < w.size(); ++i) {
    m[i] = beta1 * m[i] + (1 - beta1) * dw[i];
    v[i] = beta2 * v[i] + (1 - beta2) * dw[i] * dw[i];
    const double m_hat = m[i] / (1 - std::pow(beta1, step));
    const double v_hat = v[i] / (1 - std::pow(beta2, step));
    w[i] -= rate * (m_hat / (std::sqrt(v_hat) + options.epsilon) + options.weight_decay * w[i]);
  }
}

void Sgd(const SgdOptions& options, In dw, Out w, Out velocity) {
  for (size_t i = 0; i < w.size(); ++i) {
    const double g = dw[i] + options.weight_decay * w[i];
    const double u = g + (velocity.empty() ? 0 : options.momentum * velocity[i]);
    if (!velocity.empty()) velocity[i] = u;
    w[i] -= options.learning_rate * (options.nesterov ? g + options.momentum * u : u);
  }
}

void RmsProp(const RmsPropOptions& options, In dw, Out w, Out squares, Out velocity) {
  const double decay = options.decay, epsilon = options.epsilon;
  for (size_t i = 0; i < w.size(); ++i) {
    const double g = dw[i] + options.weight_decay * w[i];
    squares[i] = decay * squares[i] + (1 - decay) * g * g;
    const double root = options.epsilon_inside_root ? std::sqrt(squares[i] + epsilon)
                                                    : std::sqrt(squares[i]) + epsilon;
    const double u = g / root + (velocity.empty() ? 0 : options.momentum * velocity[i]);
    if (!velocity.empty()) velocity[i] = u;
    w[i] -= options.learning_rate * u;
  }
}

double SumOfSquares(In x) {
  double sum = 0;
  for (double v : x) sum += v * v;
  return sum;
}

}  // namespace reference
}  // namespace pipelab
