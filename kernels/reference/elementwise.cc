#include <cmath>

#include "kernels/reference/functions.h"

namespace pipelab {
namespace reference {
namespace {

const double kGeluSlope = std::sqrt(2 / M_PI);
constexpr double kGeluCubic = 0.044715;

}  // namespace

void Gelu(GeluForm form, In x, Out y) {
  if (form == GeluForm::kErf) {
    for (size_t i = 0; i < x.size(); ++i) y[i] = 0.5 * x[i] * std::erfc(-x[i] / M_SQRT2);
    return;
  }
  for (size_t i = 0; i < x.size(); ++i) {
    const double u = kGeluSlope * (x[i] + kGeluCubic * x[i] * x[i] * x[i]);
    y[i] = 0.5 * x[i] * (1 + std::tanh(u));
  }
}

void GeluGradient(GeluForm form, In dy, In x, Out dx) {
  for (size_t i = 0; i < x.size(); ++i) {
    if (form == GeluForm::kErf) {
      const double density = std::exp(-0.5 * x[i] * x[i]) / std::sqrt(2 * M_PI);
      dx[i] = dy[i] * (0.5 * std::erfc(-x[i] / M_SQRT2) + x[i] * density);
      continue;
    }
    const double t = std::tanh(kGeluSlope * (x[i] + kGeluCubic * x[i] * x[i] * x[i]));
    const double du = kGeluSlope * (1 + 3 * kGeluCubic * x[i] * x[i]);
    dx[i] = dy[i] * (0.5 * (1 + t) + 0.5 * x[i] * (1 - t * t) * du);
  }
}

namespace {

// The activation of a gate, and its derivative.
double Act(GateKind kind, double g) {
  double y = 0;
  if (kind == GateKind::kSwish) return g / (1 + std::exp(-g));
  Gelu(GeluForm::kTanh, In(&g, 1), Out(&y, 1));
  return y;
}

double ActSlope(GateKind kind, double g) {
  const double one = 1;
  double slope = 0;
  if (kind == GateKind::kGelu) {
    GeluGradient(GeluForm::kTanh, In(&one, 1), In(&g, 1), Out(&slope, 1));
    return slope;
  }
  const double s = 1 / (1 + std::exp(-g));
  return s * (1 + g * (1 - s));
}

}  // namespace

void Gate(GateKind kind, const RowsSize& size, In gu_M2F, Out y_MF) {
  const int64_t f = size.columns;
  for (int64_t i = 0; i < size.rows; ++i) {
    for (int64_t j = 0; j < f; ++j) {
      y_MF[i * f + j] = Act(kind, gu_M2F[2 * i * f + j]) * gu_M2F[(2 * i + 1) * f + j];
    }
  }
}

void GateGradient(GateKind kind, const RowsSize& size, In dy_MF, In gu_M2F, Out dgu_M2F) {
  const int64_t f = size.columns;
  for (int64_t i = 0; i < size.rows; ++i) {
    for (int64_t j = 0; j < f; ++j) {
      const int64_t at = 2 * i * f + j;
      const double g = gu_M2F[at], u = gu_M2F[at + f], dy = dy_MF[i * f + j];
      dgu_M2F[at] = dy * u * ActSlope(kind, g);
      dgu_M2F[at + f] = dy * Act(kind, g);
    }
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
