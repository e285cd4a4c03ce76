// Layer norm, and sums of columns: kernels/reference/layer_norm.cc.
#include <cmath>

#include "kernels/cuda/functions.h"
#include "kernels/cuda/launch.h"
#include "kernels/cuda/sums.h"

namespace pipelab {
namespace gpu {
namespace {

constexpr float kLayerNormEpsilon = 1e-5f;

}  // namespace

void LayerNorm(Queue& queue, const float* x, const float* gamma, const float* beta, int64_t m,
               int64_t c, float* y, float* mean, float* rstd) {
  ForEachBlock(queue, "LayerNorm", m, 0, [=] PIPELAB_DEVICE(Block & block, int64_t row) {
    const float* const in = x + row * c;
    float* const out = y + row * c;
    const float center = block.Sum(c, [&](int64_t j) { return in[j]; }) / static_cast<float>(c);
    const float squares = block.Sum(c, [&](int64_t j) {
      const float off = in[j] - center;
      return off * off;
    });
    const float scale = 1.0f / sqrtf(squares / static_cast<float>(c) + kLayerNormEpsilon);
    block.ForEach(c, [&](int64_t j) { out[j] = (in[j] - center) * scale * gamma[j] + beta[j]; });
    block.ForEach(1, [&](int64_t) {
      mean[row] = center;
      rstd[row] = scale;
    });
  });
}

// With x^ = (x - mean) rstd and g = dy gamma: dx = rstd (g - mean(g) - x^ mean(g x^)). dx may be
// dy: each thread reads its elements before it writes them.
void LayerNormInputGradient(Queue& queue, const float* dy, const float* x, const float* gamma,
                            const float* mean, const float* rstd, int64_t m, int64_t c, float* dx) {
  ForEachBlock(
      queue, "LayerNormInputGradient", m, 0, [=] PIPELAB_DEVICE(Block & block, int64_t row) {
        const int64_t at = row * c;
        const float center = mean[row], scale = rstd[row];
        const float g_sum = block.Sum(c, [&](int64_t j) { return dy[at + j] * gamma[j]; });
        const float gx_sum = block.Sum(
            c, [&](int64_t j) { return dy[at + j] * gamma[j] * ((x[at + j] - center) * scale); });
        block.ForEach(c, [&](int64_t j) {
          const float normal = (x[at + j] - center) * scale;
          const float g = dy[at + j] * gamma[j];
          dx[at + j] = scale * (g - (g_sum + normal * gx_sum) / static_cast<float>(c));
        });
      });
}

void LayerNormWeightGradient(Queue& queue, const float* dy, const float* x, const float* mean,
                             const float* rstd, int64_t m, int64_t c, float* dgamma, float* dbeta) {
  ColumnSums(
      queue, "LayerNormWeightGradient", m, c,
      [=] PIPELAB_DEVICE(int64_t i, int64_t j) {
        const float g = dy[i * c + j];
        return Two{g * ((x[i * c + j] - mean[i]) * rstd[i]), g};
      },
      [=] PIPELAB_DEVICE(int64_t j, double gamma, double beta) {
        dgamma[j] += static_cast<float>(gamma);
        dbeta[j] += static_cast<float>(beta);
      });
}

void AddColumnSums(Queue& queue, const float* dy, int64_t m, int64_t n, float* db) {
  ColumnSums(
      queue, "AddColumnSums", m, n,
      [=] PIPELAB_DEVICE(int64_t i, int64_t j) {
        return Two{dy[i * n + j], 0};
      },
      [=] PIPELAB_DEVICE(int64_t j, double sum, double) { db[j] += static_cast<float>(sum); });
}

}  // namespace gpu
}  // namespace pipelab
