#include "kernels/cases/gradient_check.h"

#include <algorithm>
#include <cmath>

#include "gtest/gtest.h"
#include "tools/base/rng.h"

namespace pipelab {

Vector NormalVector(int64_t n, const std::string& name) {
  const CounterRng rng(5, name);
  Vector v(n);
  for (int64_t i = 0; i < n; ++i) v[i] = rng.Normal(i);
  return v;
}

std::vector<int32_t> RandomIndices(int64_t n, int64_t bound) {
  const CounterRng rng(6, "indices");
  std::vector<int32_t> v(n);
  for (int64_t i = 0; i < n; ++i) v[i] = static_cast<int32_t>(rng.Below(i, bound));
  return v;
}

double Dot(const Vector& a, const Vector& b) {
  double sum = 0;
  for (size_t i = 0; i < a.size(); ++i) sum += a[i] * b[i];
  return sum;
}

void CheckGradients(const std::string& name, Inputs inputs,
                    const std::function<double(const Inputs&)>& loss,
                    const std::vector<Vector>& gradients) {
  SCOPED_TRACE(name);
  constexpr double kStep = 1e-5;
  double most = 1e-3;
  for (const Vector& g : gradients) {
    for (double v : g) most = std::max(most, std::abs(v));
  }
  for (size_t k = 0; k < gradients.size(); ++k) {
    ASSERT_EQ(gradients[k].size(), inputs[k].size());
    const size_t stride = std::max<size_t>(1, inputs[k].size() / 40);
    for (size_t i = 0; i < inputs[k].size(); i += stride) {
      const double value = inputs[k][i];
      inputs[k][i] = value + kStep;
      const double above = loss(inputs);
      inputs[k][i] = value - kStep;
      const double below = loss(inputs);
      inputs[k][i] = value;
      ASSERT_NEAR(gradients[k][i], (above - below) / (2 * kStep), 1e-7 * most)
          << "input " << k << ", element " << i;
    }
  }
}

}  // namespace pipelab
