// Batch normalisation: statistics of columns, then one pass over the rows.
//
//   BatchNormStatistics(x, m, c, mean, variance);
//   BatchNormApply(x, gamma, beta, mean, variance, m, c, y);
//
// Row-major, m rows of c columns.
#ifndef PIPELAB_KERNELS_CPU_BATCH_NORM_H_
#define PIPELAB_KERNELS_CPU_BATCH_NORM_H_

#include <cstdint>

#include "absl/types/span.h"

namespace pipelab {
namespace cpu {

void BatchNormStatistics(const float* x, int64_t m, int64_t c, float* mean, float* variance);
void BatchNormApply(const float* x, const float* gamma, const float* beta, const float* mean,
                    const float* variance, int64_t m, int64_t c, float* y);
// Sums over rows: dbeta = sum dy, dgamma = sum dy x^.
void BatchNormSums(const float* dy, const float* x, const float* mean, const float* variance,
                   int64_t m, int64_t c, float* dgamma, float* dbeta);
// The sums are over `all` rows, of which these m are some.
void BatchNormBackward(const float* dy, const float* x, const float* gamma, const float* mean,
                       const float* variance, const float* dgamma, const float* dbeta, int64_t all,
                       int64_t m, int64_t c, float* dx);

// statistics: a row of c means and c variances for each micro-batch; rows: as in UpdateRunning.
void BatchNormUpdateRunning(const float* statistics, int64_t micro_batches,
                            absl::Span<const int64_t> rows, int64_t c, float momentum,
                            float* running_mean, float* running_variance);

}  // namespace cpu
}  // namespace pipelab

#endif  // PIPELAB_KERNELS_CPU_BATCH_NORM_H_
