// Rows along the edges of a block: kernels/reference/graphs.cc. A thread has one number of a result
// and adds to it in the order of edges, so there are no atomics.
#include <cmath>

#include "kernels/cuda/functions.h"
#include "kernels/cuda/launch.h"
#include "kernels/cuda/philox.h"
#include "kernels/cuda/sums.h"

namespace pipelab {
namespace gpu {
namespace {

PIPELAB_DEVICE inline float Leaky(float x, float slope) { return x > 0.0f ? x : slope * x; }

PIPELAB_DEVICE inline float MeanFactor(const EdgePlaces& e, int64_t t) {
  const int32_t degree = e.offsets[t + 1] - e.offsets[t];
  return degree > 0 ? 1.0f / static_cast<float>(degree) : 0.0f;
}

}  // namespace

template <class T>
void GatherRows(Queue& queue, const int32_t* ids, const T* x, int64_t rows, int64_t m, int64_t c,
                T* y) {
  ForEach(queue, "GatherRows", m * c, [=] PIPELAB_DEVICE(int64_t at) {
    const int64_t row = ids[at / c];
    y[at] = 0 <= row && row < rows ? static_cast<float>(x[row * c + at % c]) : NAN;
  });
}

template <class T>
void DropRows(Queue& queue, const int32_t* ids, const DropoutNumbers& numbers, const T* x,
              int64_t m, int64_t c, T* y) {
  const DropoutNumbers d = numbers;
  const float scale = 1.0f / (1.0f - d.rate);
  ForEach(queue, "DropRows", m * c, [=] PIPELAB_DEVICE(int64_t at) {
    const uint64_t element = d.offset + static_cast<uint64_t>(ids[at / c] * c + at % c);
    const float value = x[at];
    y[at] = RandomUniform(d.seed, d.stream, element) >= d.rate ? value * scale : 0.0f;
  });
}

template <class T>
void Aggregate(Queue& queue, const EdgePlaces& edges, bool mean, bool self, int64_t c, const T* x,
               T* y) {
  const EdgePlaces e = edges;
  ForEach(queue, "Aggregate", e.targets * c, [=] PIPELAB_DEVICE(int64_t at) {
    const int64_t t = at / c, j = at % c;
    float sum = self ? static_cast<float>(x[at]) : 0.0f;
    for (int64_t i = e.offsets[t]; i < e.offsets[t + 1]; ++i) {
      sum += static_cast<float>(x[e.edge_sources[i] * c + j]);
    }
    y[at] = mean ? sum * MeanFactor(e, t) : sum;
  });
}

template <class T>
void AggregateGradient(Queue& queue, const EdgePlaces& edges, bool mean, bool self, int64_t c,
                       const T* dy, T* dx) {
  const EdgePlaces e = edges;
  ForEach(queue, "AggregateGradient", e.sources * c, [=] PIPELAB_DEVICE(int64_t at) {
    const int64_t s = at / c, j = at % c;
    float sum = self && s < e.targets ? static_cast<float>(dy[at]) : 0.0f;
    for (int64_t i = e.back_offsets[s]; i < e.back_offsets[s + 1]; ++i) {
      const int64_t t = e.edge_targets[e.back_edges[i]];
      const float value = dy[t * c + j];
      sum += mean ? value * MeanFactor(e, t) : value;
    }
    dx[at] = sum;
  });
}

void HeadProducts(Queue& queue, int64_t m, int64_t c, int64_t heads, const float* x, const float* w,
                  float* y) {
  const int64_t size = c / heads;
  ForEach(queue, "HeadProducts", m * heads, [=] PIPELAB_DEVICE(int64_t i) {
    float sum = 0.0f;
    for (int64_t k = 0; k < size; ++k) sum += x[i * size + k] * w[i % heads * size + k];
    y[i] = sum;
  });
}

void HeadProductsInputGradient(Queue& queue, int64_t m, int64_t c, int64_t heads, const float* dy,
                               const float* w, float* dx) {
  const int64_t size = c / heads;
  ForEach(queue, "HeadProductsInputGradient", m * c,
          [=] PIPELAB_DEVICE(int64_t at) { dx[at] += dy[at / size] * w[at % c]; });
}

void HeadProductsWeightGradient(Queue& queue, int64_t m, int64_t c, int64_t heads, const float* x,
                                const float* dy, float* dw) {
  const int64_t size = c / heads;
  ColumnSums(
      queue, "HeadProductsWeightGradient", m, c,
      [=] PIPELAB_DEVICE(int64_t i, int64_t j) {
        return Two{x[i * c + j] * dy[i * heads + j / size], 0};
      },
      [=] PIPELAB_DEVICE(int64_t j, double sum, double) { dw[j] += static_cast<float>(sum); });
}

void EdgeSoftmax(Queue& queue, const EdgePlaces& edges, float slope, int64_t heads,
                 const float* source, const float* target, float* a) {
  const EdgePlaces e = edges;
  ForEach(queue, "EdgeSoftmax", e.targets * heads, [=] PIPELAB_DEVICE(int64_t at) {
    const int64_t t = at / heads, h = at % heads, begin = e.offsets[t], end = e.offsets[t + 1];
    float most = -INFINITY, sum = 0.0f;
    for (int64_t i = begin; i < end; ++i) {
      const float score = Leaky(source[e.edge_sources[i] * heads + h] + target[at], slope);
      a[i * heads + h] = score;
      most = fmaxf(most, score);
    }
    for (int64_t i = begin; i < end; ++i) {
      const float power = expf(a[i * heads + h] - most);
      a[i * heads + h] = power;
      sum += power;
    }
    for (int64_t i = begin; i < end; ++i) a[i * heads + h] /= sum;
  });
}

void EdgeSoftmaxGradient(Queue& queue, const EdgePlaces& edges, float slope, int64_t heads,
                         const float* source, const float* target, const float* a, float* da,
                         float* dsource, float* dtarget) {
  const EdgePlaces e = edges;
  ForEach(queue, "EdgeSoftmaxTargets", e.targets * heads, [=] PIPELAB_DEVICE(int64_t at) {
    const int64_t t = at / heads, h = at % heads, begin = e.offsets[t], end = e.offsets[t + 1];
    float inner = 0.0f, all = 0.0f;
    for (int64_t i = begin; i < end; ++i) inner += a[i * heads + h] * da[i * heads + h];
    for (int64_t i = begin; i < end; ++i) {
      const float sum = source[e.edge_sources[i] * heads + h] + target[at];
      const float d = a[i * heads + h] * (da[i * heads + h] - inner) * (sum > 0.0f ? 1.0f : slope);
      da[i * heads + h] = d;
      all += d;
    }
    dtarget[at] = all;
  });
  ForEach(queue, "EdgeSoftmaxSources", e.sources * heads, [=] PIPELAB_DEVICE(int64_t at) {
    const int64_t s = at / heads, h = at % heads;
    float all = 0.0f;
    for (int64_t i = e.back_offsets[s]; i < e.back_offsets[s + 1]; ++i) {
      all += da[e.back_edges[i] * heads + h];
    }
    dsource[at] = all;
  });
}

void Weighed(Queue& queue, const EdgePlaces& edges, int64_t c, int64_t heads, const float* a,
             const float* x, float* y) {
  const EdgePlaces e = edges;
  const int64_t size = c / heads;
  ForEach(queue, "Weighed", e.targets * c, [=] PIPELAB_DEVICE(int64_t at) {
    const int64_t t = at / c, j = at % c;
    float sum = 0.0f;
    for (int64_t i = e.offsets[t]; i < e.offsets[t + 1]; ++i) {
      sum += a[i * heads + j / size] * x[e.edge_sources[i] * c + j];
    }
    y[at] = sum;
  });
}

void WeighedGradient(Queue& queue, const EdgePlaces& edges, int64_t count, int64_t c, int64_t heads,
                     const float* a, const float* x, const float* dy, float* da, float* dx) {
  const EdgePlaces e = edges;
  const int64_t size = c / heads;
  ForEach(queue, "WeighedEdges", count * heads, [=] PIPELAB_DEVICE(int64_t at) {
    const int64_t i = at / heads, h = at % heads;
    const float* const of_source = x + e.edge_sources[i] * c + h * size;
    const float* const of_target = dy + e.edge_targets[i] * c + h * size;
    float sum = 0.0f;
    for (int64_t k = 0; k < size; ++k) sum += of_source[k] * of_target[k];
    da[at] = sum;
  });
  ForEach(queue, "WeighedSources", e.sources * c, [=] PIPELAB_DEVICE(int64_t at) {
    const int64_t s = at / c, j = at % c;
    float sum = 0.0f;
    for (int64_t i = e.back_offsets[s]; i < e.back_offsets[s + 1]; ++i) {
      const int64_t edge = e.back_edges[i];
      sum += a[edge * heads + j / size] * dy[e.edge_targets[edge] * c + j];
    }
    dx[at] = sum;
  });
}

// The types of activations.
#define PIPELAB_MAKE(T)                                                                      \
  template void GatherRows(Queue&, const int32_t*, const T*, int64_t, int64_t, int64_t, T*); \
  template void DropRows(Queue&, const int32_t*, const DropoutNumbers&, const T*, int64_t,   \
                         int64_t, T*);                                                       \
  template void Aggregate(Queue&, const EdgePlaces&, bool, bool, int64_t, const T*, T*);     \
  template void AggregateGradient(Queue&, const EdgePlaces&, bool, bool, int64_t, const T*, T*);
PIPELAB_MAKE(float)
PIPELAB_MAKE(BFloat16)
#undef PIPELAB_MAKE

}  // namespace gpu
}  // namespace pipelab
