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

  double DoCrossEntropy(const Tensor& logits_MV, const Tensor& targets_M) override {
    const RowsSize size = RowsOf(logits_MV);
    return Number(logits_MV, [&](auto at, double* result) {
      gpu::CrossEntropy(*device_, at(logits_MV), Ids(targets_M), size.rows, size.columns, result);
    });
  }
  void DoCrossEntropyGradient(const Tensor& logits_MV, const Tensor& targets_M, float scale,
                              const Tensor& dlogits_MV) override {
    const RowsSize size = RowsOf(logits_MV);
    ByType(logits_MV, [&](auto at) {
      gpu::CrossEntropyGradient(*device_, at(logits_MV), Ids(targets_M), size.rows, size.columns,
                                scale, at(dlogits_MV));
    });
  }

  void DoLargestLogits(const Tensor& logits_MV, const Tensor& most_M) override {
    const RowsSize size = RowsOf(logits_MV);
    ByType(logits_MV, [&](auto at) {
      gpu::LargestLogits(*device_, at(logits_MV), size.rows, size.columns, Data(most_M));
    });
  }
  void DoSoftmaxSums(const Tensor& logits_MV, const Tensor& targets_M, int64_t first,
                     const Tensor& most_M, const Tensor& sums_M,
                     const Tensor& target_logits_M) override {
    const RowsSize size = RowsOf(logits_MV);
    ByType(logits_MV, [&](auto at) {
      gpu::SoftmaxSums(*device_, at(logits_MV), Ids(targets_M), first, Data(most_M), size.rows,
                       size.columns, Data(sums_M), Data(target_logits_M));
    });
  }
  double DoCrossEntropyOfSums(const Tensor& targets_M, const Tensor& sums_M,
                              const Tensor& target_logits_M, const Tensor& most_M) override {
    const int64_t m = targets_M.size();
    return Number(sums_M, [&](auto, double* result) {
      gpu::CrossEntropyOfSums(*device_, Ids(targets_M), Data(sums_M), Data(target_logits_M), m,
                              Data(most_M), result);
    });
  }
  void DoCrossEntropyPartGradient(const Tensor& logits_MV, const Tensor& targets_M, int64_t first,
                                  const Tensor& lse_M, float scale,
                                  const Tensor& dlogits_MV) override {
    const RowsSize size = RowsOf(logits_MV);
    ByType(logits_MV, [&](auto at) {
      gpu::CrossEntropyPartGradient(*device_, at(logits_MV), Ids(targets_M), first, Data(lse_M),
                                    size.rows, size.columns, scale, at(dlogits_MV));
    });
  }

  double DoSquaredError(const Tensor& y, const Tensor& targets) override {
    const int64_t n = y.size();
    return Number(y, [&](auto at, double* result) {
      gpu::SquaredError(*device_, at(y), Data(targets), n, result);
    });
  }
  void DoSquaredErrorGradient(const Tensor& y, const Tensor& targets, float scale,
                              const Tensor& dy) override {
    const int64_t n = y.size();
    ByType(y, [&](auto at) {
      gpu::SquaredErrorGradient(*device_, at(y), Data(targets), scale, n, at(dy));
    });
  }

  double DoBinaryCrossEntropy(const Tensor& logits, const Tensor& targets) override {
    const int64_t n = logits.size();
    return Number(logits, [&](auto at, double* result) {
      gpu::BinaryCrossEntropy(*device_, at(logits), Data(targets), n, result);
    });
  }
  void DoBinaryCrossEntropyGradient(const Tensor& logits, const Tensor& targets, float scale,
                                    const Tensor& dlogits) override {
    const int64_t n = logits.size();
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
