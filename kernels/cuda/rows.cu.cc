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

template <class T>
void LayerNorm(Queue& queue, const T* x, const T* gamma, const T* beta, int64_t m, int64_t c, T* y,
               float* mean, float* rstd) {
  ForEachBlock(queue, "LayerNorm", m, 0, [=] PIPELAB_DEVICE(Block & block, int64_t row) {
    const T* const in = x + row * c;
    T* const out = y + row * c;
    const float center =
        block.Sum(c, [&](int64_t j) { return static_cast<float>(in[j]); }) / static_cast<float>(c);
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
template <class T>
void LayerNormInputGradient(Queue& queue, const T* dy, const T* x, const T* gamma,
                            const float* mean, const float* rstd, const T* residual, int64_t m,
                            int64_t c, T* dx) {
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
          const float own = scale * (g - (g_sum + normal * gx_sum) / static_cast<float>(c));
          dx[at + j] = residual == nullptr ? own : own + residual[at + j];
        });
      });
}

template <class T>
void LayerNormWeightGradient(Queue& queue, const T* dy, const T* x, const float* mean,
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

template <class T>
void AddColumnSums(Queue& queue, const T* dy, int64_t m, int64_t n, float* db) {
  ColumnSums(
      queue, "AddColumnSums", m, n,
      [=] PIPELAB_DEVICE(int64_t i, int64_t j) {
        return Two{dy[i * n + j], 0};
      },
      [=] PIPELAB_DEVICE(int64_t j, double sum, double) { db[j] += static_cast<float>(sum); });
}

// The types of activations.
#define PIPELAB_MAKE(T)                                                                         \
  template void LayerNorm(Queue&, const T*, const T*, const T*, int64_t, int64_t, T*, float*,   \
                          float*);                                                              \
  template void LayerNormInputGradient(Queue&, const T*, const T*, const T*, const float*,      \
                                       const float*, const T*, int64_t, int64_t, T*);           \
  template void LayerNormWeightGradient(Queue&, const T*, const T*, const float*, const float*, \
                                        int64_t, int64_t, float*, float*);                      \
  template void AddColumnSums(Queue&, const T*, int64_t, int64_t, float*);
PIPELAB_MAKE(float)
PIPELAB_MAKE(BFloat16)
#undef PIPELAB_MAKE

}  // namespace gpu
}  // namespace pipelab
