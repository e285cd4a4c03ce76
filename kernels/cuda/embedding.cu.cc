// Rows of tables: kernels/reference/embedding.cc. A table's row collects its gradients in the order
// of entries: the block of a row's first entry adds all of them.
#include <cmath>

#include "kernels/cuda/functions.h"
#include "kernels/cuda/launch.h"

namespace pipelab {
namespace gpu {
namespace {

constexpr int32_t kNoId = -1;  // kernels/embedding_kernels.h

// One over the ids in the bag, or 1.
PIPELAB_DEVICE inline float BagFactor(const int32_t* ids, int64_t bag, bool mean) {
  if (!mean) return 1.0f;
  int64_t count = 0;
  for (int64_t k = 0; k < bag; ++k) count += ids[k] != kNoId;
  return count > 0 ? 1.0f / static_cast<float>(count) : 1.0f;
}

}  // namespace

template <class T>
void Lookup(Queue& queue, const int32_t* tokens, int64_t first, const T* table, int64_t rows,
            const T* positions, int64_t period, bool strict, int64_t m, int64_t c, T* y) {
  ForEach(queue, "Lookup", m * c, [=] PIPELAB_DEVICE(int64_t at) {
    const int64_t i = at / c, j = at % c, row = tokens[i] - first;
    const bool own = 0 <= row && row < rows;
    const float value = own ? static_cast<float>(table[row * c + j]) : strict ? NAN : 0.0f;
    y[at] = positions == nullptr ? value : value + positions[i % period * c + j];
  });
}

template <class T>
void PositionsGradient(Queue& queue, const T* dy, int64_t period, int64_t m, int64_t c,
                       float* dpositions) {
  ForEach(queue, "PositionsGradient", period * c, [=] PIPELAB_DEVICE(int64_t at) {
    float sum = dpositions[at];
    for (int64_t i = at; i < m * c; i += period * c) sum += dy[i];
    dpositions[at] = sum;
  });
}

template <class T>
void RowsGradient(Queue& queue, const int32_t* ids, int64_t entries, int64_t bag, int64_t first,
                  bool mean, const T* dy, int64_t c, int64_t rows, float* dtable) {
  ForEachBlock(queue, "RowsGradient", entries, 0, [=] PIPELAB_DEVICE(Block & block, int64_t e) {
    const int32_t id = ids[e];
    const int64_t row = id - first;
    const bool counts = 0 <= row && row < rows;
    const int64_t before =
        counts ? block.Sum(e, [&](int64_t k) { return ids[k] == id ? int64_t{1} : int64_t{0}; })
               : 1;
    block.ForEach(before > 0 ? 0 : c, [&](int64_t j) {
      float sum = dtable[row * c + j];
      for (int64_t k = e; k < entries; ++k) {
        if (ids[k] != id) continue;
        const int64_t i = k / bag;
        sum += BagFactor(ids + i * bag, bag, mean) * dy[i * c + j];
      }
      dtable[row * c + j] = sum;
    });
  });
}

template <class T>
void Bag(Queue& queue, const int32_t* ids, int64_t bag, const T* table, int64_t rows, bool mean,
         int64_t m, int64_t c, T* y) {
  ForEach(queue, "Bag", m * c, [=] PIPELAB_DEVICE(int64_t at) {
    const int64_t i = at / c, j = at % c;
    const int32_t* const own = ids + i * bag;
    const float factor = BagFactor(own, bag, mean);
    float sum = 0.0f;
    for (int64_t k = 0; k < bag; ++k) {
      if (own[k] == kNoId) continue;
      const bool known = 0 <= own[k] && own[k] < rows;
      sum += known ? factor * table[own[k] * c + j] : NAN;
    }
    y[at] = sum;
  });
}

// The types of activations.
#define PIPELAB_MAKE(T)                                                                         \
  template void Lookup(Queue&, const int32_t*, int64_t, const T*, int64_t, const T*, int64_t,   \
                       bool, int64_t, int64_t, T*);                                             \
  template void PositionsGradient(Queue&, const T*, int64_t, int64_t, int64_t, float*);         \
  template void RowsGradient(Queue&, const int32_t*, int64_t, int64_t, int64_t, bool, const T*, \
                             int64_t, int64_t, float*);                                         \
  template void Bag(Queue&, const int32_t*, int64_t, const T*, int64_t, bool, int64_t, int64_t, T*);
PIPELAB_MAKE(float)
PIPELAB_MAKE(BFloat16)
#undef PIPELAB_MAKE

}  // namespace gpu
}  // namespace pipelab
