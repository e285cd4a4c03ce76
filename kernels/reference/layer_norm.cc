#include <cmath>

#include "kernels/reference/functions.h"

namespace pipelab {
namespace reference {
namespace {

// The mean is 0 in an RMS norm, which has none.
double At(In mean_M, int64_t i) { return mean_M.empty() ? 0 : mean_M[i]; }

}  // namespace

void LayerNorm(const RowsSize& size, In x_MC, In gamma_C, In beta_C, Out y_MC, Out mean_M,
               Out rstd_M) {
  const int64_t c = size.columns;
  for (int64_t i = 0; i < size.rows; ++i) {
    const In x = x_MC.subspan(i * c, c);
    double sum = 0, squares = 0;
    for (double v : x) sum += v;
    const double mean = mean_M.empty() ? 0 : sum / static_cast<double>(c);
    for (double v : x) squares += (v - mean) * (v - mean);
    const double rstd = 1 / std::sqrt(squares / static_cast<double>(c) + kLayerNormEpsilon);
    for (int64_t j = 0; j < c; ++j) {
      y_MC[i * c + j] = (x[j] - mean) * rstd * gamma_C[j] + (beta_C.empty() ? 0 : beta_C[j]);
    }
    if (!mean_M.empty()) mean_M[i] = mean;
    rstd_M[i] = rstd;
  }
}

// With x^ = (x - mean) rstd and g = dy gamma: dx = rstd (g - mean(g) - x^ mean(g x^)), without
// mean(g) where the mean of x does not count.
void LayerNormInputGradient(const RowsSize& size, In dy_MC, In x_MC, In gamma_C, In mean_M,
                            In rstd_M, Out dx_MC) {
  const int64_t c = size.columns;
  for (int64_t i = 0; i < size.rows; ++i) {
    double g_sum = 0, gx_sum = 0;
    for (int64_t j = 0; j < c; ++j) {
      const double g = dy_MC[i * c + j] * gamma_C[j];
      if (!mean_M.empty()) g_sum += g;
      gx_sum += g * (x_MC[i * c + j] - At(mean_M, i)) * rstd_M[i];
    }
    for (int64_t j = 0; j < c; ++j) {
      const double normal = (x_MC[i * c + j] - At(mean_M, i)) * rstd_M[i];
      const double g = dy_MC[i * c + j] * gamma_C[j];
      dx_MC[i * c + j] = rstd_M[i] * (g - (g_sum + normal * gx_sum) / static_cast<double>(c));
    }
  }
}

void LayerNormWeightGradient(const RowsSize& size, In dy_MC, In x_MC, In mean_M, In rstd_M,
                             Out dgamma_C, Out dbeta_C) {
  const int64_t c = size.columns;
  for (int64_t i = 0; i < size.rows; ++i) {
    for (int64_t j = 0; j < c; ++j) {
      dgamma_C[j] += dy_MC[i * c + j] * (x_MC[i * c + j] - At(mean_M, i)) * rstd_M[i];
      if (!dbeta_C.empty()) dbeta_C[j] += dy_MC[i * c + j];
    }
  }
}

}  // namespace reference
}  // namespace pipelab
