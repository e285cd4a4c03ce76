#include "kernels/cpu/graphs.h"

#include <algorithm>
#include <cmath>

#include "kernels/simd.h"

namespace pipelab {
namespace cpu {
namespace {

// y += factor x, inside of functions that are compiled for several processors.
PIPELAB_INLINE void AddRow(float factor, const float* x, int64_t c, float* y) {
#pragma omp simd
  for (int64_t k = 0; k < c; ++k) y[k] += factor * x[k];
}

PIPELAB_INLINE void SumRow(const float* x, int64_t c, float* y) {
#pragma omp simd
  for (int64_t k = 0; k < c; ++k) y[k] += x[k];
}

PIPELAB_INLINE float ProductOf(const float* a, const float* b, int64_t n) {
  float sum = 0;
#pragma omp simd reduction(+ : sum)
  for (int64_t k = 0; k < n; ++k) sum += a[k] * b[k];
  return sum;
}

PIPELAB_INLINE float MeanFactor(const EdgePlaces& e, int64_t t) {
  const int32_t degree = e.offsets_T1[t + 1] - e.offsets_T1[t];
  return degree > 0 ? 1.0f / static_cast<float>(degree) : 0.0f;
}

PIPELAB_INLINE float Leaky(float x, float slope) { return x > 0 ? x : slope * x; }

// The rows of the next edges come from anywhere: asked for early, they arrive in time.
constexpr int64_t kAhead = 8;
PIPELAB_INLINE void Prefetch(const float* row, int64_t c) {
  for (int64_t k = 0; k < c; k += 16) __builtin_prefetch(row + k);
}

}  // namespace

PIPELAB_SIMD void GatherRows(const int32_t* ids, int64_t m, int64_t c, const float* x, float* y) {
  for (int64_t i = 0; i < m; ++i) {
    if (i + kAhead < m) Prefetch(x + ids[i + kAhead] * c, c);
    std::copy_n(x + ids[i] * c, c, y + i * c);
  }
}

PIPELAB_SIMD void AggregateForward(const EdgePlaces& e, AggregateMode mode, int64_t begin,
                                   int64_t end, int64_t c, const float* x, float* y) {
  const int64_t edges = e.offsets_T1[end];
  for (int64_t t = begin; t < end; ++t) {
    float* const out = y + t * c;
    if (mode == AggregateMode::kSelfAndSum) {
      std::copy_n(x + t * c, c, out);
    } else {
      std::fill_n(out, c, 0.0f);
    }
    for (int64_t i = e.offsets_T1[t]; i < e.offsets_T1[t + 1]; ++i) {
      if (i + kAhead < edges) Prefetch(x + e.sources_E[i + kAhead] * c, c);
      SumRow(x + e.sources_E[i] * c, c, out);
    }
    if (mode != AggregateMode::kMean) continue;
    const float factor = MeanFactor(e, t);
#pragma omp simd
    for (int64_t k = 0; k < c; ++k) out[k] *= factor;
  }
}

PIPELAB_SIMD void AggregateBackward(const EdgePlaces& e, AggregateMode mode, int64_t begin,
                                    int64_t end, int64_t c, const float* dy, float* dx) {
  const bool mean = mode == AggregateMode::kMean;
  const int64_t edges = e.back_offsets_S1[end];
  for (int64_t s = begin; s < end; ++s) {
    float* const out = dx + s * c;
    if (mode == AggregateMode::kSelfAndSum && s < e.targets) {
      std::copy_n(dy + s * c, c, out);
    } else {
      std::fill_n(out, c, 0.0f);
    }
    for (int64_t i = e.back_offsets_S1[s]; i < e.back_offsets_S1[s + 1]; ++i) {
      if (i + kAhead < edges) Prefetch(dy + e.targets_E[e.back_edges_E[i + kAhead]] * c, c);
      const int64_t t = e.targets_E[e.back_edges_E[i]];
      AddRow(mean ? MeanFactor(e, t) : 1.0f, dy + t * c, c, out);
    }
  }
}

PIPELAB_SIMD float Product(const float* a, const float* b, int64_t n) { return ProductOf(a, b, n); }

PIPELAB_SIMD void EdgeSoftmaxForward(const EdgePlaces& e, float slope, int64_t heads,
                                     const float* source, const float* target, float* a) {
  for (int64_t t = 0; t < e.targets; ++t) {
    const int64_t begin = e.offsets_T1[t], end = e.offsets_T1[t + 1];
    for (int64_t h = 0; h < heads; ++h) {
      float most = -INFINITY, sum = 0;
      for (int64_t i = begin; i < end; ++i) {
        a[i * heads + h] = Leaky(source[e.sources_E[i] * heads + h] + target[t * heads + h], slope);
        most = std::max(most, a[i * heads + h]);
      }
      for (int64_t i = begin; i < end; ++i) {
        sum += a[i * heads + h] = FastExp(a[i * heads + h] - most);
      }
      for (int64_t i = begin; i < end; ++i) a[i * heads + h] /= sum;
    }
  }
}

PIPELAB_SIMD void EdgeSoftmaxBackward(const EdgePlaces& e, float slope, int64_t heads,
                                      const float* source, const float* target, const float* a,
                                      float* da, float* dtarget) {
  for (int64_t t = 0; t < e.targets; ++t) {
    const int64_t begin = e.offsets_T1[t], end = e.offsets_T1[t + 1];
    for (int64_t h = 0; h < heads; ++h) {
      float inner = 0, all = 0;
      for (int64_t i = begin; i < end; ++i) inner += a[i * heads + h] * da[i * heads + h];
      for (int64_t i = begin; i < end; ++i) {
        const float sum = source[e.sources_E[i] * heads + h] + target[t * heads + h];
        float& d = da[i * heads + h];
        d = a[i * heads + h] * (d - inner) * (sum > 0 ? 1.0f : slope);
        all += d;
      }
      dtarget[t * heads + h] = all;
    }
  }
}

PIPELAB_SIMD void SumsOfSources(const EdgePlaces& e, int64_t heads, const float* of_edge,
                                float* of_source) {
  for (int64_t s = 0; s < e.sources; ++s) {
    float* const out = of_source + s * heads;
    std::fill_n(out, heads, 0.0f);
    for (int64_t i = e.back_offsets_S1[s]; i < e.back_offsets_S1[s + 1]; ++i) {
      SumRow(of_edge + e.back_edges_E[i] * heads, heads, out);
    }
  }
}

PIPELAB_SIMD void WeighedForward(const EdgePlaces& e, int64_t begin, int64_t end, int64_t c,
                                 int64_t heads, const float* a, const float* x, float* y) {
  const int64_t size = c / heads;
  std::fill(y + begin * c, y + end * c, 0.0f);
  for (int64_t t = begin; t < end; ++t) {
    for (int64_t i = e.offsets_T1[t]; i < e.offsets_T1[t + 1]; ++i) {
      for (int64_t h = 0; h < heads; ++h) {
        AddRow(a[i * heads + h], x + e.sources_E[i] * c + h * size, size, y + t * c + h * size);
      }
    }
  }
}

PIPELAB_SIMD void WeighedBackward(const EdgePlaces& e, int64_t begin, int64_t end, int64_t c,
                                  int64_t heads, const float* a, const float* x, const float* dy,
                                  float* da, float* dx) {
  const int64_t size = c / heads;
  for (int64_t s = begin; s < end; ++s) {
    std::fill_n(dx + s * c, c, 0.0f);
    for (int64_t i = e.back_offsets_S1[s]; i < e.back_offsets_S1[s + 1]; ++i) {
      const int64_t edge = e.back_edges_E[i], t = e.targets_E[edge];
      for (int64_t h = 0; h < heads; ++h) {
        const float* const of_head = dy + t * c + h * size;
        da[edge * heads + h] = ProductOf(of_head, x + s * c + h * size, size);
        AddRow(a[edge * heads + h], of_head, size, dx + s * c + h * size);
      }
    }
  }
}

}  // namespace cpu
}  // namespace pipelab
