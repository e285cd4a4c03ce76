// Batch normalisation: kernels/reference/batch_norm.cc.
#include <cmath>

#include "kernels/cuda/functions.h"
#include "kernels/cuda/launch.h"
#include "kernels/cuda/map.h"
#include "kernels/cuda/sums.h"

namespace pipelab {
namespace gpu {
namespace {

constexpr float kEpsilon = 1e-5f;  // kBatchNormEpsilon

}  // namespace

template <class T>
void BatchNormStatistics(Queue& queue, const T* x, int64_t m, int64_t c, float* mean,
                         float* variance) {
  const double rows = static_cast<double>(m);
  ColumnSums(
      queue, "BatchNormMean", m, c,
      [=] PIPELAB_DEVICE(int64_t i, int64_t j) {
        return Two{x[i * c + j], 0};
      },
      [=] PIPELAB_DEVICE(int64_t j, double sum, double) {
        mean[j] = static_cast<float>(sum / rows);
      });
  ColumnSums(
      queue, "BatchNormVariance", m, c,
      [=] PIPELAB_DEVICE(int64_t i, int64_t j) {
        const float off = x[i * c + j] - mean[j];
        return Two{off * off, 0};
      },
      [=] PIPELAB_DEVICE(int64_t j, double squares, double) {
        variance[j] = static_cast<float>(squares / rows);
      });
}

template <class T>
void BatchNormInference(Queue& queue, const T* x, const T* gamma, const T* beta, const float* mean,
                        const float* variance, int64_t m, int64_t c, T* y) {
  Map(queue, "BatchNorm", m * c, x, y, [=] PIPELAB_DEVICE(int64_t at, float v) {
    const int64_t j = at % c;
    const float rstd = 1.0f / sqrtf(variance[j] + kEpsilon);
    return (v - mean[j]) * rstd * gamma[j] + beta[j];
  });
}

template <class T>
void BatchNormGradientSums(Queue& queue, const T* dy, const T* x, const float* mean,
                           const float* variance, int64_t m, int64_t c, float* dgamma_part,
                           float* dbeta_part) {
  ColumnSums(
      queue, "BatchNormGradientSums", m, c,
      [=] PIPELAB_DEVICE(int64_t i, int64_t j) {
        const float rstd = 1.0f / sqrtf(variance[j] + kEpsilon), g = dy[i * c + j];
        return Two{g * ((x[i * c + j] - mean[j]) * rstd), g};
      },
      [=] PIPELAB_DEVICE(int64_t j, double normal_sum, double sum) {
        dgamma_part[j] = static_cast<float>(normal_sum);
        dbeta_part[j] = static_cast<float>(sum);
      });
}

template <class T>
void BatchNormInputGradient(Queue& queue, const T* dy, const T* x, const T* gamma,
                            const float* mean, const float* variance, const float* dgamma,
                            const float* dbeta, int64_t all, int64_t m, int64_t c, T* dx) {
  Map(queue, "BatchNormInputGradient", m * c, dy, x, dx,
      [=] PIPELAB_DEVICE(int64_t at, float g, float v) {
        const int64_t j = at % c;
        const float rstd = 1.0f / sqrtf(variance[j] + kEpsilon);
        const float normal = (v - mean[j]) * rstd;
        const float share = (dbeta[j] + normal * dgamma[j]) / static_cast<float>(all);
        return gamma[j] * rstd * (g - share);
      });
}

void BatchNormUpdateRunning(Queue& queue, const float* statistics, const float* rows,
                            int64_t batches, int64_t c, float momentum, float* running_mean,
                            float* running_variance) {
  ForEach(queue, "BatchNormUpdateRunning", c, [=] PIPELAB_DEVICE(int64_t j) {
    double values = 0, sum = 0, squares = 0;  // of the union
    for (int64_t b = 0; b < batches; ++b) {
      const double n = rows == nullptr ? 1.0 : static_cast<double>(rows[b]);
      const double mean = statistics[2 * b * c + j], variance = statistics[(2 * b + 1) * c + j];
      values += n;
      sum += n * mean;
      squares += n * (variance + mean * mean);
    }
    const double mean = sum / values, variance = squares / values - mean * mean;
    const double step = momentum, old_mean = running_mean[j], old_variance = running_variance[j];
    running_mean[j] = static_cast<float>(old_mean + step * (mean - old_mean));
    running_variance[j] = static_cast<float>(old_variance + step * (variance - old_variance));
  });
}

// The types of activations.
#define PIPELAB_MAKE(T)                                                                            \
  template void BatchNormStatistics(Queue&, const T*, int64_t, int64_t, float*, float*);           \
  template void BatchNormInference(Queue&, const T*, const T*, const T*, const float*,             \
                                   const float*, int64_t, int64_t, T*);                            \
  template void BatchNormGradientSums(Queue&, const T*, const T*, const float*, const float*,      \
                                      int64_t, int64_t, float*, float*);                           \
  template void BatchNormInputGradient(Queue&, const T*, const T*, const T*, const float*,         \
                                       const float*, const float*, const float*, int64_t, int64_t, \
                                       int64_t, T*);
PIPELAB_MAKE(float)
PIPELAB_MAKE(BFloat16)
#undef PIPELAB_MAKE

}  // namespace gpu
}  // namespace pipelab
