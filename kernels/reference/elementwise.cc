#include <cmath>

#include "kernels/reference/functions.h"

namespace pipelab {
namespace reference {
namespace {

const double kGeluSlope = std::sqrt(2 / M_PI);
constexpr double kGeluCubic = 0.044715;

}  // namespace

void Gelu(In x, Out y) {
  for (size_t i = 0; i < x.size(); ++i) {
    const double u = kGeluSlope * (x[i] + kGeluCubic * x[i] * x[i] * x[i]);
    y[i] = 0.5 * x[i] * (1 + std::tanh(u));
  }
}

void GeluGradient(In dy, In x, Out dx) {
  for (size_t i = 0; i < x.size(); ++i) {
    const double t = std::tanh(kGeluSlope * (x[i] + kGeluCubic * x[i] * x[i] * x[i]));
    const double du = kGeluSlope * (1 + 3 * kGeluCubic * x[i] * x[i]);
    dx[i] = dy[i] * (0.5 * (1 + t) + 0.5 * x[i] * (1 - t * t) * du);
  }
}

void Relu(In x, Out y) {
  for (size_t i = 0; i < x.size(); ++i) y[i] = x[i] < 0 ? 0 : x[i];
}

void ReluGradient(In dy, In y, Out dx) {
  for (size_t i = 0; i < y.size(); ++i) dx[i] = y[i] <= 0 ? 0 : dy[i];
}

void Dropout(In x, const DropoutMask& mask, Out y) {
  for (size_t i = 0; i < x.size(); ++i) {
    const bool kept = mask.rng.Uniform(mask.offset + i) >= mask.rate;
    y[i] = kept ? x[i] / (1.0 - mask.rate) : 0;
  }
}

}  // namespace reference
}  // namespace pipelab
