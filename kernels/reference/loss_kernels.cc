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
  double CrossEntropy(const Tensor& logits_MV, const Tensor& targets_M) override {
    const RowsSize size = RowsOf(logits_MV);
    const auto targets =
        CheckIndices("CrossEntropy", targets_M, size.rows, size.columns, kNoTarget);
    return reference::CrossEntropy(size, Wide(logits_MV), targets);
  }
  void CrossEntropyGradient(const Tensor& logits_MV, const Tensor& targets_M, float scale,
                            const Tensor& dlogits_MV) override {
    const RowsSize size = CheckRows("CrossEntropyGradient", {&logits_MV, &dlogits_MV}, {}, {});
    const auto targets =
        CheckIndices("CrossEntropyGradient", targets_M, size.rows, size.columns, kNoTarget);
    reference::CrossEntropyGradient(size, Wide(logits_MV), targets, scale, WideResult(dlogits_MV));
  }

  void LargestLogits(const Tensor& logits_MV, const Tensor& most_M) override {
    const RowsSize size = CheckRows("LargestLogits", {&logits_MV}, {}, {&most_M});
    reference::LargestLogits(size, Wide(logits_MV), WideResult(most_M));
  }
  void SoftmaxSums(const Tensor& logits_MV, const Tensor& targets_M, int64_t first,
                   const Tensor& most_M, const Tensor& sums_M,
                   const Tensor& target_logits_M) override {
    const RowsSize size = CheckRows("SoftmaxSums", {&logits_MV}, {},
                                    {&targets_M, &most_M, &sums_M, &target_logits_M});
    reference::SoftmaxSums(size, Wide(logits_MV), targets_M.i32(), first, Wide(most_M),
                           WideResult(sums_M), WideResult(target_logits_M));
  }
  double CrossEntropyOfSums(const Tensor& targets_M, const Tensor& sums_M,
                            const Tensor& target_logits_M, const Tensor& most_M) override {
    CheckSameSize("CrossEntropyOfSums", {&targets_M, &sums_M, &target_logits_M, &most_M});
    return reference::CrossEntropyOfSums(targets_M.i32(), Wide(sums_M), Wide(target_logits_M),
                                         WideResult(most_M));
  }
  void CrossEntropyPartGradient(const Tensor& logits_MV, const Tensor& targets_M, int64_t first,
                                const Tensor& lse_M, float scale,
                                const Tensor& dlogits_MV) override {
    const RowsSize size =
        CheckRows("CrossEntropyPartGradient", {&logits_MV, &dlogits_MV}, {}, {&targets_M, &lse_M});
    reference::CrossEntropyPartGradient(size, Wide(logits_MV), targets_M.i32(), first, Wide(lse_M),
                                        scale, WideResult(dlogits_MV));
  }

  double SquaredError(const Tensor& y, const Tensor& targets) override {
    CheckSameSize("SquaredError", {&y, &targets});
    return reference::SquaredError(Wide(y), Wide(targets));
  }
  void SquaredErrorGradient(const Tensor& y, const Tensor& targets, float scale,
                            const Tensor& dy) override {
    CheckSameSize("SquaredErrorGradient", {&y, &targets, &dy});
    reference::SquaredErrorGradient(Wide(y), Wide(targets), scale, WideResult(dy));
  }

  double BinaryCrossEntropy(const Tensor& logits, const Tensor& targets) override {
    CheckSameSize("BinaryCrossEntropy", {&logits, &targets});
    return reference::BinaryCrossEntropy(Wide(logits), Wide(targets));
  }
  void BinaryCrossEntropyGradient(const Tensor& logits, const Tensor& targets, float scale,
                                  const Tensor& dlogits) override {
    CheckSameSize("BinaryCrossEntropyGradient", {&logits, &targets, &dlogits});
    reference::BinaryCrossEntropyGradient(Wide(logits), Wide(targets), scale, WideResult(dlogits));
  }
};

}  // namespace

std::unique_ptr<LossKernels> MakeLossKernels() { return std::make_unique<ReferenceLossKernels>(); }

}  // namespace reference
}  // namespace pipelab
