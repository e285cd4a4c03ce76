// Layer norm, and sums of columns: kernels/reference/layer_norm.cc.
#include <cmath>

#include "kernels/cuda/functions.h"
#include "kernels/cuda/launch.h"
#include "kernels/cuda/map.h"
#include "kernels/cuda/sums.h"

namespace pipelab {
namespace gpu {
namespace {

constexpr float kLayerNormEpsilon = 1e-5f;

}  // namespace

template <class T>
void LayerNorm(Queue& queue, const T* x, const T* gamma, const T* beta, int64_t m, int64_t c, T* y,
               float* mean, float* rstd) {
  constexpr int kCount = kNumbersOfThread<T>;
  const int64_t parts = PartsOf<kCount>(c);
  const bool aligned = c % kCount == 0 && IsWide(x) && IsWide(gamma) && IsWide(beta) && IsWide(y);
  ForEachBlock(queue, "LayerNorm", m, 0, [=] PIPELAB_DEVICE(Block & block, int64_t row) {
    const T* const in = x + row * c;
    float center = 0.0f;
    if (mean != nullptr) {
      const float sum = block.Sum(parts, [&](int64_t j) {
        const Part part = PartAt<kCount>(j, c, aligned);
        const auto v = Load<kCount>(in, part);
        return SumOfPart<kCount>(part, [&](int k) { return static_cast<float>(v.values[k]); });
      });
      center = sum / static_cast<float>(c);
    }
    const float squares = block.Sum(parts, [&](int64_t j) {
      const Part part = PartAt<kCount>(j, c, aligned);
      const auto v = Load<kCount>(in, part);
      return SumOfPart<kCount>(part, [&](int k) {
        const float off = v.values[k] - center;
        return off * off;
      });
    });
    const float scale = 1.0f / sqrtf(squares / static_cast<float>(c) + kLayerNormEpsilon);
    block.ForEach(parts, [&](int64_t j) {
      const Part part = PartAt<kCount>(j, c, aligned);
      const auto v = Load<kCount>(in, part);
      const auto factor = Load<kCount>(gamma, part);
      Numbers<T, kCount> term{}, out{};
      if (beta != nullptr) term = Load<kCount>(beta, part);
      PIPELAB_UNROLL
      for (int k = 0; k < kCount; ++k) {
        out.values[k] = (v.values[k] - center) * scale * factor.values[k] + term.values[k];
      }
      Store(out, part, y + row * c);
    });
    block.ForEach(1, [&](int64_t) {
      if (mean != nullptr) mean[row] = center;
      rstd[row] = scale;
    });
  });
}

// With x^ = (x - mean) rstd and g = dy gamma: dx = rstd (g - mean(g) - x^ mean(g x^)), of an RMS
// norm without mean(g). dx may be dy: each thread reads its elements before it writes them.
template <class T>
void LayerNormInputGradient(Queue& queue, const T* dy, const T* x, const T* gamma,
                            const float* mean, const float* rstd, const T* residual, int64_t m,
                            int64_t c, T* dx) {
  constexpr int kCount = kNumbersOfThread<T>;
  const int64_t parts = PartsOf<kCount>(c);
  const bool aligned = c % kCount == 0 && IsWide(dy) && IsWide(x) && IsWide(gamma) &&
                       IsWide(residual) && IsWide(dx);  // null is
  ForEachBlock(
      queue, "LayerNormInputGradient", m, 0, [=] PIPELAB_DEVICE(Block & block, int64_t row) {
        const int64_t at = row * c;
        const float center = mean == nullptr ? 0.0f : mean[row], scale = rstd[row];
        float g_sum = 0.0f;
        if (mean != nullptr) {
          g_sum = block.Sum(parts, [&](int64_t j) {
            const Part part = PartAt<kCount>(j, c, aligned);
            const auto g = Load<kCount>(dy + at, part);
            const auto factor = Load<kCount>(gamma, part);
            return SumOfPart<kCount>(part, [&](int k) { return g.values[k] * factor.values[k]; });
          });
        }
        const float gx_sum = block.Sum(parts, [&](int64_t j) {
          const Part part = PartAt<kCount>(j, c, aligned);
          const auto g = Load<kCount>(dy + at, part);
          const auto v = Load<kCount>(x + at, part);
          const auto factor = Load<kCount>(gamma, part);
          return SumOfPart<kCount>(part, [&](int k) {
            return g.values[k] * factor.values[k] * ((v.values[k] - center) * scale);
          });
        });
        block.ForEach(parts, [&](int64_t j) {
          const Part part = PartAt<kCount>(j, c, aligned);
          const auto g = Load<kCount>(dy + at, part);
          const auto v = Load<kCount>(x + at, part);
          const auto factor = Load<kCount>(gamma, part);
          Numbers<T, kCount> past{}, out{};
          if (residual != nullptr) past = Load<kCount>(residual + at, part);
          PIPELAB_UNROLL
          for (int k = 0; k < kCount; ++k) {
            const float normal = (v.values[k] - center) * scale;
            const float own = scale * (g.values[k] * factor.values[k] -
                                       (g_sum + normal * gx_sum) / static_cast<float>(c));
            out.values[k] = residual == nullptr ? own : own + past.values[k];
          }
          Store(out, part, dx + at);
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
        const float center = mean == nullptr ? 0.0f : mean[i];
        return Two{g * ((x[i * c + j] - center) * rstd[i]), g};
      },
      [=] PIPELAB_DEVICE(int64_t j, double gamma, double beta) {
        dgamma[j] += static_cast<float>(gamma);
        if (dbeta != nullptr) dbeta[j] += static_cast<float>(beta);
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
