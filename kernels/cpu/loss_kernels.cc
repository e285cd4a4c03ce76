#include <cmath>
#include <memory>

#include "kernels/cpu/groups.h"
#include "kernels/cpu/loss.h"
#include "kernels/cpu/rows.h"
#include "kernels/shape_checks.h"

namespace pipelab {
namespace cpu {
namespace {

class CpuLossKernels final : public LossKernels {
 public:
  double DoCrossEntropy(const Tensor& logits_MV, const Tensor& targets_M) override {
    const auto [m, v] = RowsOf(logits_MV);
    const auto targets = targets_M.i32();
    return CrossEntropyForward(Data(logits_MV), targets.data(), m, v);
  }
  void DoCrossEntropyGradient(const Tensor& logits_MV, const Tensor& targets_M, float scale,
                              const Tensor& dlogits_MV) override {
    const auto [m, v] = RowsOf(logits_MV);
    const auto targets = targets_M.i32();
    CrossEntropyBackward(Data(logits_MV), targets.data(), m, v, scale, Data(dlogits_MV));
  }

  void DoLargestLogits(const Tensor& logits_MV, const Tensor& most_M) override {
    const auto [m, v] = RowsOf(logits_MV);
    LargestOfRows(Data(logits_MV), m, v, Data(most_M));
  }
  void DoSoftmaxSums(const Tensor& logits_MV, const Tensor& targets_M, int64_t first,
                     const Tensor& most_M, const Tensor& sums_M,
                     const Tensor& target_logits_M) override {
    const auto [m, v] = RowsOf(logits_MV);
    SoftmaxSumsForward(Data(logits_MV), targets_M.i32().data(), first, Data(most_M), m, v,
                       Data(sums_M), Data(target_logits_M));
  }
  double DoCrossEntropyOfSums(const Tensor& targets_M, const Tensor& sums_M,
                              const Tensor& target_logits_M, const Tensor& most_M) override {
    const int64_t m = targets_M.size();
    const auto targets = targets_M.i32();
    const auto sums = sums_M.f32(), target_logits = target_logits_M.f32(), most = most_M.f32();
    double total = 0;
    for (int64_t i = 0; i < m; ++i) {
      const double log_sum = std::log(double{sums[i]});
      if (targets[i] != kNoTarget) total += log_sum + (double{most[i]} - double{target_logits[i]});
      most[i] = static_cast<float>(log_sum + double{most[i]});
    }
    return total;
  }
  void DoCrossEntropyPartGradient(const Tensor& logits_MV, const Tensor& targets_M, int64_t first,
                                  const Tensor& lse_M, float scale,
                                  const Tensor& dlogits_MV) override {
    const auto [m, v] = RowsOf(logits_MV);
    CrossEntropyPartBackward(Data(logits_MV), targets_M.i32().data(), first, Data(lse_M), m, v,
                             scale, Data(dlogits_MV));
  }

  double DoSquaredError(const Tensor& y, const Tensor& targets) override {
    return SquaredErrorForward(Data(y), Data(targets), y.size());
  }
  void DoSquaredErrorGradient(const Tensor& y, const Tensor& targets, float scale,
                              const Tensor& dy) override {
    const int64_t n = y.size();
    SquaredErrorBackward(Data(y), Data(targets), scale, n, Data(dy));
  }

  double DoBinaryCrossEntropy(const Tensor& logits, const Tensor& targets) override {
    return BinaryCrossEntropyForward(Data(logits), Data(targets), logits.size());
  }
  void DoBinaryCrossEntropyGradient(const Tensor& logits, const Tensor& targets, float scale,
                                    const Tensor& dlogits) override {
    const int64_t n = logits.size();
    BinaryCrossEntropyBackward(Data(logits), Data(targets), scale, n, Data(dlogits));
  }
};

}  // namespace

std::unique_ptr<LossKernels> MakeLossKernels() { return std::make_unique<CpuLossKernels>(); }

}  // namespace cpu
}  // namespace pipelab
