// Losses: sums over the rows or elements of a micro-batch, and their gradients.
//
//   loss += backend->loss().CrossEntropy(logits_MV, targets_M);
//   backend->loss().CrossEntropyGradient(logits_MV, targets_M, /*scale=*/1.0f / rows, logits_MV);
//
// The forward returns the plain sum, in double; the gradient is that of scale * sum. A mean over
// the mini-batch is the caller's scale, so that micro-batches add up to the mini-batch.
#ifndef PIPELAB_KERNELS_LOSS_KERNELS_H_
#define PIPELAB_KERNELS_LOSS_KERNELS_H_

#include <cstdint>

#include "kernels/shape_checks.h"
#include "kernels/tensor/tensor.h"

namespace pipelab {

// In place of a target: the row has no loss and no gradient (padding, tokens that are not asked
// for).
inline constexpr int32_t kNoTarget = -1;

class LossKernels {
 public:
  virtual ~LossKernels() = default;

  // The sum over rows of -log softmax(logits)[target]. The gradient is scale * (softmax - one-hot);
  // dlogits may be logits.
  double CrossEntropy(const Tensor& logits_MV, const Tensor& targets_M) {
    const auto [m, v] = RowsOf(logits_MV);
    CheckIndices("CrossEntropy", targets_M, m, v, kNoTarget);
    return DoCrossEntropy(logits_MV, targets_M);
  }
  void CrossEntropyGradient(const Tensor& logits_MV, const Tensor& targets_M, float scale,
                            const Tensor& dlogits_MV) {
    const auto [m, v] = CheckRows("CrossEntropyGradient", {&logits_MV, &dlogits_MV}, {}, {});
    CheckIndices("CrossEntropyGradient", targets_M, m, v, kNoTarget);
    DoCrossEntropyGradient(logits_MV, targets_M, scale, dlogits_MV);
  }

  // The same for devices that have some columns (words) each of the logits, [first, first + V), and
  // work together. Every device: its rows' largest logits; with the largest of all devices in
  // `most`, its sums of e^(logit - most), and the logits of the targets that it has, 0 for others.
  // Of the sums of these over all devices CrossEntropyOfSums makes the loss, and turns `most` into
  // the logarithm of the whole row's sum of exponentials, all that the gradient needs.
  void LargestLogits(const Tensor& logits_MV, const Tensor& most_M) {
    CheckRows("LargestLogits", {&logits_MV}, {}, {&most_M});
    DoLargestLogits(logits_MV, most_M);
  }
  void SoftmaxSums(const Tensor& logits_MV, const Tensor& targets_M, int64_t first,
                   const Tensor& most_M, const Tensor& sums_M, const Tensor& target_logits_M) {
    CheckRows("SoftmaxSums", {&logits_MV}, {}, {&targets_M, &most_M, &sums_M, &target_logits_M});
    DoSoftmaxSums(logits_MV, targets_M, first, most_M, sums_M, target_logits_M);
  }
  double CrossEntropyOfSums(const Tensor& targets_M, const Tensor& sums_M,
                            const Tensor& target_logits_M, const Tensor& most_M) {
    CheckSameSize("CrossEntropyOfSums", {&targets_M, &sums_M, &target_logits_M, &most_M});
    return DoCrossEntropyOfSums(targets_M, sums_M, target_logits_M, most_M);
  }
  void CrossEntropyPartGradient(const Tensor& logits_MV, const Tensor& targets_M, int64_t first,
                                const Tensor& lse_M, float scale, const Tensor& dlogits_MV) {
    CheckRows("CrossEntropyPartGradient", {&logits_MV, &dlogits_MV}, {}, {&targets_M, &lse_M});
    DoCrossEntropyPartGradient(logits_MV, targets_M, first, lse_M, scale, dlogits_MV);
  }

  // The sum over elements of (y - target)^2; the gradient is 2 scale (y - target). dy may be y.
  double SquaredError(const Tensor& y, const Tensor& targets) {
    CheckSameSize("SquaredError", {&y, &targets});
    return DoSquaredError(y, targets);
  }
  void SquaredErrorGradient(const Tensor& y, const Tensor& targets, float scale, const Tensor& dy) {
    CheckSameSize("SquaredErrorGradient", {&y, &targets, &dy});
    DoSquaredErrorGradient(y, targets, scale, dy);
  }

  // The sum over elements of log(1 + e^z) - target z, for targets in [0, 1]: cross-entropy of a
  // coin whose logit is z. The gradient is scale (sigmoid(z) - target); dlogits may be logits.
  double BinaryCrossEntropy(const Tensor& logits, const Tensor& targets) {
    CheckSameSize("BinaryCrossEntropy", {&logits, &targets});
    return DoBinaryCrossEntropy(logits, targets);
  }
  void BinaryCrossEntropyGradient(const Tensor& logits, const Tensor& targets, float scale,
                                  const Tensor& dlogits) {
    CheckSameSize("BinaryCrossEntropyGradient", {&logits, &targets, &dlogits});
    DoBinaryCrossEntropyGradient(logits, targets, scale, dlogits);
  }

 private:
  // What a backend does, once the shapes are checked.
  virtual double DoCrossEntropy(const Tensor& logits_MV, const Tensor& targets_M) = 0;
  virtual void DoCrossEntropyGradient(const Tensor& logits_MV, const Tensor& targets_M, float scale,
                                      const Tensor& dlogits_MV) = 0;
  virtual void DoLargestLogits(const Tensor& logits_MV, const Tensor& most_M) = 0;
  virtual void DoSoftmaxSums(const Tensor& logits_MV, const Tensor& targets_M, int64_t first,
                             const Tensor& most_M, const Tensor& sums_M,
                             const Tensor& target_logits_M) = 0;
  virtual double DoCrossEntropyOfSums(const Tensor& targets_M, const Tensor& sums_M,
                                      const Tensor& target_logits_M, const Tensor& most_M) = 0;
  virtual void DoCrossEntropyPartGradient(const Tensor& logits_MV, const Tensor& targets_M,
                                          int64_t first, const Tensor& lse_M, float scale,
                                          const Tensor& dlogits_MV) = 0;
  virtual double DoSquaredError(const Tensor& y, const Tensor& targets) = 0;
  virtual void DoSquaredErrorGradient(const Tensor& y, const Tensor& targets, float scale,
                                      const Tensor& dy) = 0;
  virtual double DoBinaryCrossEntropy(const Tensor& logits, const Tensor& targets) = 0;
  virtual void DoBinaryCrossEntropyGradient(const Tensor& logits, const Tensor& targets,
                                            float scale, const Tensor& dlogits) = 0;
};

}  // namespace pipelab

#endif  // PIPELAB_KERNELS_LOSS_KERNELS_H_
