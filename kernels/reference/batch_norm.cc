#include <algorithm>
#include <cmath>

#include "kernels/reference/functions.h"

namespace pipelab {
namespace reference {

void BatchNormStatistics(const RowsSize& size, In x_MC, Out mean_C, Out variance_C) {
  const int64_t c = size.columns;
  const double m = static_cast<double>(size.rows);
  for (int64_t j = 0; j < c; ++j) {
    double sum = 0, squares = 0;
    for (int64_t i = 0; i < size.rows; ++i) sum += x_MC[i * c + j];
    const double mean = sum / m;
    for (int64_t i = 0; i < size.rows; ++i) {
      squares += (x_MC[i * c + j] - mean) * (x_MC[i * c + j] - mean);
    }
    mean_C[j] = mean;
    variance_C[j] = squares / m;
  }
}

void BatchNorm(const RowsSize& size, In x_MC, In gamma_C, In beta_C, Out y_MC, Out mean_C,
               Out variance_C) {
  BatchNormStatistics(size, x_MC, mean_C, variance_C);
  BatchNormInference(size, x_MC, gamma_C, beta_C, mean_C, variance_C, y_MC);
}

void BatchNormInference(const RowsSize& size, In x_MC, In gamma_C, In beta_C, In mean_C,
                        In variance_C, Out y_MC) {
  const int64_t c = size.columns;
  for (int64_t i = 0; i < size.rows; ++i) {
    for (int64_t j = 0; j < c; ++j) {
      const double rstd = 1 / std::sqrt(variance_C[j] + kBatchNormEpsilon);
      y_MC[i * c + j] = (x_MC[i * c + j] - mean_C[j]) * rstd * gamma_C[j] + beta_C[j];
    }
  }
}

void BatchNormGradientSums(const RowsSize& size, In dy_MC, In x_MC, In mean_C, In variance_C,
                           Out dgamma_part_C, Out dbeta_part_C) {
  const int64_t c = size.columns;
  for (int64_t j = 0; j < c; ++j) {
    const double rstd = 1 / std::sqrt(variance_C[j] + kBatchNormEpsilon);
    double sum = 0, normal_sum = 0;
    for (int64_t i = 0; i < size.rows; ++i) {
      sum += dy_MC[i * c + j];
      normal_sum += dy_MC[i * c + j] * (x_MC[i * c + j] - mean_C[j]) * rstd;
    }
    dbeta_part_C[j] = sum;
    dgamma_part_C[j] = normal_sum;
  }
}

void BatchNormInputGradientOfSums(const RowsSize& size, In dy_MC, In x_MC, In gamma_C, In mean_C,
                                  In variance_C, In dgamma_C, In dbeta_C, int64_t rows, Out dx_MC) {
  const int64_t c = size.columns;
  const double m = static_cast<double>(rows);
  for (int64_t j = 0; j < c; ++j) {
    const double rstd = 1 / std::sqrt(variance_C[j] + kBatchNormEpsilon);
    for (int64_t i = 0; i < size.rows; ++i) {
      const double normal = (x_MC[i * c + j] - mean_C[j]) * rstd;
      dx_MC[i * c + j] =
          gamma_C[j] * rstd * (dy_MC[i * c + j] - (dbeta_C[j] + normal * dgamma_C[j]) / m);
    }
  }
}

void BatchNormInputGradient(const RowsSize& size, In dy_MC, In x_MC, In gamma_C, In mean_C,
                            In variance_C, Out dx_MC, Out dgamma_part_C, Out dbeta_part_C) {
  BatchNormGradientSums(size, dy_MC, x_MC, mean_C, variance_C, dgamma_part_C, dbeta_part_C);
  BatchNormInputGradientOfSums(size, dy_MC, x_MC, gamma_C, mean_C, variance_C, dgamma_part_C,
                               dbeta_part_C, size.rows, dx_MC);
}

void BatchNormUpdateRunning(int64_t micro_batches, In statistics_B2C,
                            absl::Span<const int64_t> rows_B, double momentum, Out running_mean_C,
                            Out running_variance_C) {
  const int64_t c = static_cast<int64_t>(running_mean_C.size());
  for (int64_t j = 0; j < c; ++j) {
    double values = 0, sum = 0, squares = 0;  // of the union
    for (int64_t b = 0; b < micro_batches; ++b) {
      const double n = rows_B.empty() ? 1 : static_cast<double>(rows_B[b]);
      const double mean = statistics_B2C[2 * b * c + j];
      values += n;
      sum += n * mean;
      squares += n * (statistics_B2C[(2 * b + 1) * c + j] + mean * mean);
    }
    const double mean = sum / values, variance = squares / values - mean * mean;
    running_mean_C[j] += momentum * (mean - running_mean_C[j]);
    running_variance_C[j] += momentum * (variance - running_variance_C[j]);
  }
}

}  // namespace reference
}  // namespace pipelab
