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
    const auto [m, v] = RowsOf(logits_MV);
    CheckIndices("CrossEntropy", targets_M, m, v, kNoTarget);
    return Number([&, m = m, v = v](double* result) {
      gpu::CrossEntropy(*device_, Data(logits_MV), Ids(targets_M), m, v, result);
    });
  }
  void CrossEntropyGradient(const Tensor& logits_MV, const Tensor& targets_M, float scale,
                            const Tensor& dlogits_MV) override {
    const auto [m, v] = CheckRows("CrossEntropyGradient", {&logits_MV, &dlogits_MV}, {}, {});
    CheckIndices("CrossEntropyGradient", targets_M, m, v, kNoTarget);
    gpu::CrossEntropyGradient(*device_, Data(logits_MV), Ids(targets_M), m, v, scale,
                              Data(dlogits_MV));
  }

  void LargestLogits(const Tensor& logits_MV, const Tensor& most_M) override {
    const auto [m, v] = CheckRows("LargestLogits", {&logits_MV}, {}, {&most_M});
    gpu::LargestLogits(*device_, Data(logits_MV), m, v, Data(most_M));
  }
  void SoftmaxSums(const Tensor& logits_MV, const Tensor& targets_M, int64_t first,
                   const Tensor& most_M, const Tensor& sums_M,
                   const Tensor& target_logits_M) override {
    const auto [m, v] = CheckRows("SoftmaxSums", {&logits_MV}, {},
                                  {&targets_M, &most_M, &sums_M, &target_logits_M});
    gpu::SoftmaxSums(*device_, Data(logits_MV), Ids(targets_M), first, Data(most_M), m, v,
                     Data(sums_M), Data(target_logits_M));
  }
  double CrossEntropyOfSums(const Tensor& targets_M, const Tensor& sums_M,
                            const Tensor& target_logits_M, const Tensor& most_M) override {
    const int64_t m =
        CheckSameSize("CrossEntropyOfSums", {&targets_M, &sums_M, &target_logits_M, &most_M});
    return Number([&](double* result) {
      gpu::CrossEntropyOfSums(*device_, Ids(targets_M), Data(sums_M), Data(target_logits_M), m,
                              Data(most_M), result);
    });
  }
  void CrossEntropyPartGradient(const Tensor& logits_MV, const Tensor& targets_M, int64_t first,
                                const Tensor& lse_M, float scale,
                                const Tensor& dlogits_MV) override {
    const auto [m, v] =
        CheckRows("CrossEntropyPartGradient", {&logits_MV, &dlogits_MV}, {}, {&targets_M, &lse_M});
    gpu::CrossEntropyPartGradient(*device_, Data(logits_MV), Ids(targets_M), first, Data(lse_M), m,
                                  v, scale, Data(dlogits_MV));
  }

  double SquaredError(const Tensor& y, const Tensor& targets) override {
    const int64_t n = CheckSameSize("SquaredError", {&y, &targets});
    return Number(
        [&](double* result) { gpu::SquaredError(*device_, Data(y), Data(targets), n, result); });
  }
  void SquaredErrorGradient(const Tensor& y, const Tensor& targets, float scale,
                            const Tensor& dy) override {
    const int64_t n = CheckSameSize("SquaredErrorGradient", {&y, &targets, &dy});
    gpu::SquaredErrorGradient(*device_, Data(y), Data(targets), scale, n, Data(dy));
  }

  double BinaryCrossEntropy(const Tensor& logits, const Tensor& targets) override {
    const int64_t n = CheckSameSize("BinaryCrossEntropy", {&logits, &targets});
    return Number([&](double* result) {
      gpu::BinaryCrossEntropy(*device_, Data(logits), Data(targets), n, result);
    });
  }
  void BinaryCrossEntropyGradient(const Tensor& logits, const Tensor& targets, float scale,
                                  const Tensor& dlogits) override {
    const int64_t n = CheckSameSize("BinaryCrossEntropyGradient", {&logits, &targets, &dlogits});
    gpu::BinaryCrossEntropyGradient(*device_, Data(logits), Data(targets), scale, n, Data(dlogits));
  }

 private:
  template <class Launch>
  double Number(const Launch& launch) {
    double* const result = device_->result();
    if (result != nullptr) launch(result);
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
