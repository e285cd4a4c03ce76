#include <algorithm>
#include <cmath>
#include <cstdint>

#include "kernels/cpu/rows.h"
#include "kernels/loss_kernels.h"
#include "kernels/simd.h"

namespace pipelab {
namespace cpu {
namespace {

// Those columns of a tile of `columns` that a row sees: [begin, begin + count).
struct ColumnRange {
  int64_t begin, count;
};
PIPELAB_INLINE ColumnRange Seen(int64_t row, int64_t columns, int64_t causal_from, int64_t window) {
  const int64_t end = std::max<int64_t>(0, std::min(columns, causal_from + row + 1));
  const int64_t begin =
      window == 0 ? 0 : std::min(end, std::max<int64_t>(0, causal_from + row + 1 - window));
  return {begin, end - begin};
}

// The columns that a row of c, n of them visible, computes: whole vectors where the row has room.
PIPELAB_INLINE int64_t Computed(int64_t n, int64_t c) { return std::min(c, (n + 15) / 16 * 16); }

// out becomes e^(row - most) in the first n of `computed` columns and 0 in the rest; returns the
// sum.
PIPELAB_INLINE float ExpRow(const float* row, int64_t n, int64_t computed, float most, float* out) {
  float sum = 0;
#pragma omp simd reduction(+ : sum)
  for (int64_t j = 0; j < computed; ++j) {
    const float e = j < n ? FastExp(row[j] - most) : 0.0f;
    out[j] = e;
    sum += e;
  }
  return sum;
}

}  // namespace

PIPELAB_SIMD void SoftmaxTile(float* scores, int64_t m, int64_t c, int64_t causal_from,
                              int64_t window, float* most, float* sum, float* fade) {
  for (int64_t i = 0; i < m; ++i, scores += c) {
    const ColumnRange seen = Seen(i, c, causal_from, window);
    if (seen.count == 0) {
      std::fill(scores, scores + c, 0.0f);
      fade[i] = 1.0f;
      continue;
    }
    float* const first = scores + seen.begin;
    const float before = most[i], here = MaxOf(first, seen.count);
    most[i] = std::max(before, here);
    const int64_t computed = Computed(seen.count, c - seen.begin);
    const float added = ExpRow(first, seen.count, computed, most[i], first);
    std::fill(scores, first, 0.0f);
    std::fill(first + computed, scores + c, 0.0f);
    fade[i] = before == -INFINITY ? 0.0f : std::exp(before - most[i]);
    sum[i] = before == -INFINITY ? added : sum[i] * fade[i] + added;
  }
}

void FinishSoftmax(int64_t m, const float* most, float* sum, float* lse) {
  for (int64_t i = 0; i < m; ++i) {
    lse[i] = most[i] + std::log(sum[i]);
    sum[i] = 1.0f / sum[i];
  }
}

PIPELAB_SIMD void SoftmaxTileBackward(float* scores, float* dp, int64_t m, int64_t c,
                                      int64_t causal_from, int64_t window, const float* lse,
                                      const float* dout, const float* out, int64_t size,
                                      int64_t stride) {
  for (int64_t i = 0; i < m; ++i, scores += c, dp += c, dout += stride, out += stride) {
    const ColumnRange at = Seen(i, c, causal_from, window);
    float mean = 0;
#pragma omp simd reduction(+ : mean)
    for (int64_t j = 0; j < size; ++j) mean += dout[j] * out[j];
    const float row_lse = lse[i];
    const int64_t n = at.count, computed = Computed(n, c - at.begin);
    float *const seen = scores + at.begin, *const dseen = dp + at.begin;
#pragma omp simd
    for (int64_t j = 0; j < computed; ++j) {
      const float p = j < n ? FastExp(seen[j] - row_lse) : 0.0f;
      seen[j] = p;
      dseen[j] = j < n ? p * (dseen[j] - mean) : 0.0f;
    }
    std::fill(scores, seen, 0.0f);
    std::fill(dp, dseen, 0.0f);
    std::fill(seen + computed, scores + c, 0.0f);
    std::fill(dseen + computed, dp + c, 0.0f);
  }
}

PIPELAB_SIMD void ScaleRows(const float* factor, int64_t m, int64_t c, int64_t stride, float* y) {
  for (int64_t i = 0; i < m; ++i, y += stride) {
    const float f = factor[i];
#pragma omp simd
    for (int64_t j = 0; j < c; ++j) y[j] *= f;
  }
}

PIPELAB_SIMD double CrossEntropyForward(const float* logits, const int32_t* targets, int64_t m,
                                        int64_t v) {
  double total = 0;
  for (int64_t i = 0; i < m; ++i, logits += v) {
    if (targets[i] == kNoTarget) continue;
    const float most = MaxOf(logits, v);
    float sum = 0;
#pragma omp simd reduction(+ : sum)
    for (int64_t j = 0; j < v; ++j) sum += FastExp(logits[j] - most);
    total += std::log(double{sum}) + (double{most} - double{logits[targets[i]]});
  }
  return total;
}

PIPELAB_SIMD void CrossEntropyBackward(const float* logits, const int32_t* targets, int64_t m,
                                       int64_t v, float scale, float* dlogits) {
  for (int64_t i = 0; i < m; ++i, logits += v, dlogits += v) {
    if (targets[i] == kNoTarget) {
      std::fill_n(dlogits, v, 0.0f);
      continue;
    }
    const float sum = ExpRow(logits, v, v, MaxOf(logits, v), dlogits);
    const float factor = scale / sum;
#pragma omp simd
    for (int64_t j = 0; j < v; ++j) dlogits[j] *= factor;
    dlogits[targets[i]] -= scale;
  }
}

PIPELAB_SIMD void LargestOfRows(const float* logits, int64_t m, int64_t v, float* most) {
  for (int64_t i = 0; i < m; ++i, logits += v) most[i] = MaxOf(logits, v);
}

PIPELAB_SIMD void SoftmaxSumsForward(const float* logits, const int32_t* targets, int64_t first,
                                     const float* most, int64_t m, int64_t v, float* sums,
                                     float* target_logits) {
  for (int64_t i = 0; i < m; ++i, logits += v) {
    float sum = 0;
#pragma omp simd reduction(+ : sum)
    for (int64_t j = 0; j < v; ++j) sum += FastExp(logits[j] - most[i]);
    sums[i] = sum;
    const int64_t column = targets[i] - first;
    target_logits[i] = targets[i] != kNoTarget && 0 <= column && column < v ? logits[column] : 0.0f;
  }
}

PIPELAB_SIMD void CrossEntropyPartBackward(const float* logits, const int32_t* targets,
                                           int64_t first, const float* lse, int64_t m, int64_t v,
                                           float scale, float* dlogits) {
  for (int64_t i = 0; i < m; ++i, logits += v, dlogits += v) {
    if (targets[i] == kNoTarget) {
      std::fill_n(dlogits, v, 0.0f);
      continue;
    }
    const float row_lse = lse[i];
#pragma omp simd
    for (int64_t j = 0; j < v; ++j) dlogits[j] = scale * FastExp(logits[j] - row_lse);
    const int64_t column = targets[i] - first;
    if (0 <= column && column < v) dlogits[column] -= scale;
  }
}

}  // namespace cpu
}  // namespace pipelab
