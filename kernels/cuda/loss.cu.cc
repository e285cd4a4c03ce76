// Losses: kernels/reference/loss.cc. Exponentials and their sums are in float, sums over rows and
// elements in double.
#include <cmath>

#include "kernels/cuda/functions.h"
#include "kernels/cuda/launch.h"
#include "kernels/cuda/sums.h"

namespace pipelab {
namespace gpu {
namespace {

constexpr int32_t kNoTarget = -1;  // kernels/loss_kernels.h

// The largest of a row, and the sum of e^(logit - largest).
struct RowSoftmax {
  float most, sum;
};

template <class T>
PIPELAB_DEVICE inline RowSoftmax SoftmaxOf(const Block& block, const T* row, int64_t v) {
  const float most = block.Max(v, [&](int64_t j) { return row[j]; });
  const float sum = block.Sum(v, [&](int64_t j) { return expf(row[j] - most); });
  return {most, sum};
}

}  // namespace

template <class T>
void CrossEntropy(Queue& queue, const T* logits, const int32_t* targets, int64_t m, int64_t v,
                  double* result) {
  double* const parts = static_cast<double*>(queue.Scratch((kMostParts + m) * 8));
  if (parts == nullptr) return;
  double* const losses = parts + kMostParts;
  ForEachBlock(queue, "CrossEntropy", m, 0, [=] PIPELAB_DEVICE(Block & block, int64_t i) {
    const T* const row = logits + i * v;
    const RowSoftmax softmax = SoftmaxOf(block, row, v);
    block.ForEach(1, [&](int64_t) {
      const int32_t target = targets[i];
      // A target that is no word has no logit: the loss shows it as NaN.
      const bool known = 0 <= target && target < v;
      const double logit =
          known ? static_cast<double>(static_cast<float>(row[target])) : static_cast<double>(NAN);
      losses[i] = target == kNoTarget ? 0.0
                                      : log(static_cast<double>(softmax.sum)) +
                                            (static_cast<double>(softmax.most) - logit);
    });
  });
  SumOf(
      queue, "CrossEntropy", m, [=] PIPELAB_DEVICE(int64_t i) { return losses[i]; }, parts, result);
}

template <class T>
void CrossEntropyGradient(Queue& queue, const T* logits, const int32_t* targets, int64_t m,
                          int64_t v, float scale, T* dlogits) {
  ForEachBlock(queue, "CrossEntropyGradient", m, 0, [=] PIPELAB_DEVICE(Block & block, int64_t i) {
    const T* const row = logits + i * v;
    const int32_t target = targets[i];
    const RowSoftmax softmax = SoftmaxOf(block, row, v);
    const float inverse = 1.0f / softmax.sum;
    block.ForEach(v, [&](int64_t j) {
      const float p = expf(row[j] - softmax.most) * inverse;
      const float one_hot = j == target ? 1.0f : 0.0f;
      dlogits[i * v + j] = target == kNoTarget ? 0.0f : scale * (p - one_hot);
    });
  });
}

template <class T>
void LargestLogits(Queue& queue, const T* logits, int64_t m, int64_t v, float* most) {
  ForEachBlock(queue, "LargestLogits", m, 0, [=] PIPELAB_DEVICE(Block & block, int64_t i) {
    const float largest = block.Max(v, [&](int64_t j) { return logits[i * v + j]; });
    block.ForEach(1, [&](int64_t) { most[i] = largest; });
  });
}

template <class T>
void SoftmaxSums(Queue& queue, const T* logits, const int32_t* targets, int64_t first,
                 const float* most, int64_t m, int64_t v, float* sums, float* target_logits) {
  ForEachBlock(queue, "SoftmaxSums", m, 0, [=] PIPELAB_DEVICE(Block & block, int64_t i) {
    const T* const row = logits + i * v;
    const float sum = block.Sum(v, [&](int64_t j) { return expf(row[j] - most[i]); });
    block.ForEach(1, [&](int64_t) {
      const int64_t own = targets[i] - first;  // kNoTarget may be in the range of another device
      sums[i] = sum;
      target_logits[i] = targets[i] != kNoTarget && 0 <= own && own < v ? row[own] : 0.0f;
    });
  });
}

void CrossEntropyOfSums(Queue& queue, const int32_t* targets, const float* sums,
                        const float* target_logits, int64_t m, float* most, double* result) {
  double* const parts = static_cast<double*>(queue.Scratch((kMostParts + m) * 8));
  if (parts == nullptr) return;
  double* const losses = parts + kMostParts;
  ForEach(queue, "CrossEntropyOfSums", m, [=] PIPELAB_DEVICE(int64_t i) {
    const double log_sum = log(static_cast<double>(sums[i])), largest = most[i];
    losses[i] =
        targets[i] == kNoTarget ? 0.0 : log_sum + (largest - static_cast<double>(target_logits[i]));
    most[i] = static_cast<float>(log_sum + largest);
  });
  SumOf(
      queue, "CrossEntropyOfSums", m, [=] PIPELAB_DEVICE(int64_t i) { return losses[i]; }, parts,
      result);
}

template <class T>
void CrossEntropyPartGradient(Queue& queue, const T* logits, const int32_t* targets, int64_t first,
                              const float* lse, int64_t m, int64_t v, float scale, T* dlogits) {
  ForEach(queue, "CrossEntropyPartGradient", m * v, [=] PIPELAB_DEVICE(int64_t at) {
    const int64_t i = at / v, j = at % v;
    const float one_hot = first + j == targets[i] ? 1.0f : 0.0f;
    dlogits[at] = targets[i] == kNoTarget ? 0.0f : scale * (expf(logits[at] - lse[i]) - one_hot);
  });
}

template <class T>
void SquaredError(Queue& queue, const T* y, const float* targets, int64_t n, double* result) {
  double* const parts = static_cast<double*>(queue.Scratch(kMostParts * 8));
  if (parts == nullptr) return;
  SumOf(
      queue, "SquaredError", n,
      [=] PIPELAB_DEVICE(int64_t i) {
        const double off =
            static_cast<double>(static_cast<float>(y[i])) - static_cast<double>(targets[i]);
        return off * off;
      },
      parts, result);
}

template <class T>
void SquaredErrorGradient(Queue& queue, const T* y, const float* targets, float scale, int64_t n,
                          T* dy) {
  ForEach(queue, "SquaredErrorGradient", n,
          [=] PIPELAB_DEVICE(int64_t i) { dy[i] = 2.0f * scale * (y[i] - targets[i]); });
}

template <class T>
void BinaryCrossEntropy(Queue& queue, const T* logits, const float* targets, int64_t n,
                        double* result) {
  double* const parts = static_cast<double*>(queue.Scratch(kMostParts * 8));
  if (parts == nullptr) return;
  SumOf(
      queue, "BinaryCrossEntropy", n,
      [=] PIPELAB_DEVICE(int64_t i) {
        const double z = static_cast<float>(logits[i]),
                     size = fabs(z);  // e^z may overflow, e^-|z| not
        return (z + size) / 2 + log1p(exp(-size)) - static_cast<double>(targets[i]) * z;
      },
      parts, result);
}

template <class T>
void BinaryCrossEntropyGradient(Queue& queue, const T* logits, const float* targets, float scale,
                                int64_t n, T* dlogits) {
  ForEach(queue, "BinaryCrossEntropyGradient", n, [=] PIPELAB_DEVICE(int64_t i) {
    dlogits[i] = scale * (1.0f / (1.0f + expf(-logits[i])) - targets[i]);
  });
}

// The types of activations.
#define PIPELAB_MAKE(T)                                                                           \
  template void CrossEntropy(Queue&, const T*, const int32_t*, int64_t, int64_t, double*);        \
  template void CrossEntropyGradient(Queue&, const T*, const int32_t*, int64_t, int64_t, float,   \
                                     T*);                                                         \
  template void LargestLogits(Queue&, const T*, int64_t, int64_t, float*);                        \
  template void SoftmaxSums(Queue&, const T*, const int32_t*, int64_t, const float*, int64_t,     \
                            int64_t, float*, float*);                                             \
  template void CrossEntropyPartGradient(Queue&, const T*, const int32_t*, int64_t, const float*, \
                                         int64_t, int64_t, float, T*);                            \
  template void SquaredError(Queue&, const T*, const float*, int64_t, double*);                   \
  template void SquaredErrorGradient(Queue&, const T*, const float*, float, int64_t, T*);         \
  template void BinaryCrossEntropy(Queue&, const T*, const float*, int64_t, double*);             \
  template void BinaryCrossEntropyGradient(Queue&, const T*, const float*, float, int64_t, T*);
PIPELAB_MAKE(float)
PIPELAB_MAKE(BFloat16)
#undef PIPELAB_MAKE

}  // namespace gpu
}  // namespace pipelab
