#include <memory>

#include "kernels/cuda/functions.h"
#include "kernels/cuda/groups.h"
#include "kernels/shape_checks.h"

namespace pipelab {
namespace gpu {
namespace {

class CudaLossKernels final : public LossKernels {
 public:
  explicit CudaLossKernels(Device* device) : device_(device) {}

  double CrossEntropy(const Tensor& logits_MV, const Tensor& targets_M) override {
    const RowsSize size = RowsOf(logits_MV);
    CheckIndices("CrossEntropy", targets_M, size.rows, size.columns, kNoTarget);
    return Number(logits_MV, [&](auto at, double* result) {
      gpu::CrossEntropy(*device_, at(logits_MV), Ids(targets_M), size.rows, size.columns, result);
    });
  }
  void CrossEntropyGradient(const Tensor& logits_MV, const Tensor& targets_M, float scale,
                            const Tensor& dlogits_MV) override {
    const RowsSize size = CheckRows("CrossEntropyGradient", {&logits_MV, &dlogits_MV}, {}, {});
    CheckIndices("CrossEntropyGradient", targets_M, size.rows, size.columns, kNoTarget);
    ByType(logits_MV, [&](auto at) {
      gpu::CrossEntropyGradient(*device_, at(logits_MV), Ids(targets_M), size.rows, size.columns,
                                scale, at(dlogits_MV));
    });
  }

  void LargestLogits(const Tensor& logits_MV, const Tensor& most_M) override {
    const RowsSize size = CheckRows("LargestLogits", {&logits_MV}, {}, {&most_M});
    ByType(logits_MV, [&](auto at) {
      gpu::LargestLogits(*device_, at(logits_MV), size.rows, size.columns, Data(most_M));
    });
  }
  void SoftmaxSums(const Tensor& logits_MV, const Tensor& targets_M, int64_t first,
                   const Tensor& most_M, const Tensor& sums_M,
                   const Tensor& target_logits_M) override {
    const RowsSize size = CheckRows("SoftmaxSums", {&logits_MV}, {},
                                    {&targets_M, &most_M, &sums_M, &target_logits_M});
    ByType(logits_MV, [&](auto at) {
      gpu::SoftmaxSums(*device_, at(logits_MV), Ids(targets_M), first, Data(most_M), size.rows,
                       size.columns, Data(sums_M), Data(target_logits_M));
    });
  }
  double CrossEntropyOfSums(const Tensor& targets_M, const Tensor& sums_M,
                            const Tensor& target_logits_M, const Tensor& most_M) override {
    const int64_t m =
        CheckSameSize("CrossEntropyOfSums", {&targets_M, &sums_M, &target_logits_M, &most_M});
    return Number(sums_M, [&](auto, double* result) {
      gpu::CrossEntropyOfSums(*device_, Ids(targets_M), Data(sums_M), Data(target_logits_M), m,
                              Data(most_M), result);
    });
  }
  void CrossEntropyPartGradient(const Tensor& logits_MV, const Tensor& targets_M, int64_t first,
                                const Tensor& lse_M, float scale,
                                const Tensor& dlogits_MV) override {
    const RowsSize size =
        CheckRows("CrossEntropyPartGradient", {&logits_MV, &dlogits_MV}, {}, {&targets_M, &lse_M});
    ByType(logits_MV, [&](auto at) {
      gpu::CrossEntropyPartGradient(*device_, at(logits_MV), Ids(targets_M), first, Data(lse_M),
                                    size.rows, size.columns, scale, at(dlogits_MV));
    });
  }

  double SquaredError(const Tensor& y, const Tensor& targets) override {
    const int64_t n = CheckSameSize("SquaredError", {&y, &targets});
    return Number(y, [&](auto at, double* result) {
      gpu::SquaredError(*device_, at(y), Data(targets), n, result);
    });
  }
  void SquaredErrorGradient(const Tensor& y, const Tensor& targets, float scale,
                            const Tensor& dy) override {
    const int64_t n = CheckSameSize("SquaredErrorGradient", {&y, &targets, &dy});
    ByType(y, [&](auto at) {
      gpu::SquaredErrorGradient(*device_, at(y), Data(targets), scale, n, at(dy));
    });
  }

  double BinaryCrossEntropy(const Tensor& logits, const Tensor& targets) override {
    const int64_t n = CheckSameSize("BinaryCrossEntropy", {&logits, &targets});
    return Number(logits, [&](auto at, double* result) {
      gpu::BinaryCrossEntropy(*device_, at(logits), Data(targets), n, result);
    });
  }
  void BinaryCrossEntropyGradient(const Tensor& logits, const Tensor& targets, float scale,
                                  const Tensor& dlogits) override {
    const int64_t n = CheckSameSize("BinaryCrossEntropyGradient", {&logits, &targets, &dlogits});
    ByType(logits, [&](auto at) {
      gpu::BinaryCrossEntropyGradient(*device_, at(logits), Data(targets), scale, n, at(dlogits));
    });
  }

 private:
  // By the type of x.
  template <class Launch>
  double Number(const Tensor& x, const Launch& launch) {
    double* const result = device_->result();
    if (result != nullptr) ByType(x, [&](auto at) { launch(at, result); });
    return device_->ReadResult();
  }

  Device* const device_;
};

}  // namespace

std::unique_ptr<LossKernels> MakeLossKernels(Device* device) {
  return std::make_unique<CudaLossKernels>(device);
}

}  // namespace gpu
}  // namespace pipelab
