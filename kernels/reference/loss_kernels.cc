#include <memory>

#include "kernels/reference/functions.h"
#include "kernels/reference/groups.h"
#include "kernels/reference/wide.h"
#include "kernels/shape_checks.h"

namespace pipelab {
namespace reference {
namespace {

class ReferenceLossKernels final : public LossKernels {
 public:
  double DoCrossEntropy(const Tensor& logits_MV, const Tensor& targets_M) override {
    const RowsSize size = RowsOf(logits_MV);
    const auto targets = targets_M.i32();
    return reference::CrossEntropy(size, Wide(logits_MV), targets);
  }
  void DoCrossEntropyGradient(const Tensor& logits_MV, const Tensor& targets_M, float scale,
                              const Tensor& dlogits_MV) override {
    const RowsSize size = RowsOf(logits_MV);
    const auto targets = targets_M.i32();
    reference::CrossEntropyGradient(size, Wide(logits_MV), targets, scale, WideResult(dlogits_MV));
  }

  void DoLargestLogits(const Tensor& logits_MV, const Tensor& most_M) override {
    const RowsSize size = RowsOf(logits_MV);
    reference::LargestLogits(size, Wide(logits_MV), WideResult(most_M));
  }
  void DoSoftmaxSums(const Tensor& logits_MV, const Tensor& targets_M, int64_t first,
                     const Tensor& most_M, const Tensor& sums_M,
                     const Tensor& target_logits_M) override {
    const RowsSize size = RowsOf(logits_MV);
    reference::SoftmaxSums(size, Wide(logits_MV), targets_M.i32(), first, Wide(most_M),
                           WideResult(sums_M), WideResult(target_logits_M));
  }
  double DoCrossEntropyOfSums(const Tensor& targets_M, const Tensor& sums_M,
                              const Tensor& target_logits_M, const Tensor& most_M) override {
    return reference::CrossEntropyOfSums(targets_M.i32(), Wide(sums_M), Wide(target_logits_M),
                                         WideResult(most_M));
  }
  void DoCrossEntropyPartGradient(const Tensor& logits_MV, const Tensor& targets_M, int64_t first,
                                  const Tensor& lse_M, float scale,
                                  const Tensor& dlogits_MV) override {
    const RowsSize size = RowsOf(logits_MV);
    reference::CrossEntropyPartGradient(size, Wide(logits_MV), targets_M.i32(), first, Wide(lse_M),
                                        scale, WideResult(dlogits_MV));
  }

  double DoSquaredError(const Tensor& y, const Tensor& targets) override {
    return reference::SquaredError(Wide(y), Wide(targets));
  }
  void DoSquaredErrorGradient(const Tensor& y, const Tensor& targets, float scale,
                              const Tensor& dy) override {
    reference::SquaredErrorGradient(Wide(y), Wide(targets), scale, WideResult(dy));
  }

  double DoBinaryCrossEntropy(const Tensor& logits, const Tensor& targets) override {
    return reference::BinaryCrossEntropy(Wide(logits), Wide(targets));
  }
  void DoBinaryCrossEntropyGradient(const Tensor& logits, const Tensor& targets, float scale,
                                    const Tensor& dlogits) override {
    reference::BinaryCrossEntropyGradient(Wide(logits), Wide(targets), scale, WideResult(dlogits));
  }
};

}  // namespace

std::unique_ptr<LossKernels> MakeLossKernels() { return std::make_unique<ReferenceLossKernels>(); }

}  // namespace reference
}  // namespace pipelab
