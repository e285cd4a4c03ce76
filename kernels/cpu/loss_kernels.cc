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
  double CrossEntropy(const Tensor& logits_MV, const Tensor& targets_M) override {
    const auto [m, v] = RowsOf(logits_MV);
    const auto targets = CheckIndices("CrossEntropy", targets_M, m, v, kNoTarget);
    return CrossEntropyForward(Data(logits_MV), targets.data(), m, v);
  }
  void CrossEntropyGradient(const Tensor& logits_MV, const Tensor& targets_M, float scale,
                            const Tensor& dlogits_MV) override {
    const auto [m, v] = CheckRows("CrossEntropyGradient", {&logits_MV, &dlogits_MV}, {}, {});
    const auto targets = CheckIndices("CrossEntropyGradient", targets_M, m, v, kNoTarget);
    CrossEntropyBackward(Data(logits_MV), targets.data(), m, v, scale, Data(dlogits_MV));
  }

  void LargestLogits(const Tensor& logits_MV, const Tensor& most_M) override {
    const auto [m, v] = CheckRows("LargestLogits", {&logits_MV}, {}, {&most_M});
    LargestOfRows(Data(logits_MV), m, v, Data(most_M));
  }
  void SoftmaxSums(const Tensor& logits_MV, const Tensor& targets_M, int64_t first,
                   const Tensor& most_M, const Tensor& sums_M,
                   const Tensor& target_logits_M) override {
    const auto [m, v] = CheckRows("SoftmaxSums", {&logits_MV}, {},
                                  {&targets_M, &most_M, &sums_M, &target_logits_M});
    SoftmaxSumsForward(Data(logits_MV), targets_M.i32().data(), first, Data(most_M), m, v,
                       Data(sums_M), Data(target_logits_M));
  }
  double CrossEntropyOfSums(const Tensor& targets_M, const Tensor& sums_M,
                            const Tensor& target_logits_M, const Tensor& most_M) override {
    const int64_t m =
        CheckSameSize("CrossEntropyOfSums", {&targets_M, &sums_M, &target_logits_M, &most_M});
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
  void CrossEntropyPartGradient(const Tensor& logits_MV, const Tensor& targets_M, int64_t first,
                                const Tensor& lse_M, float scale,
                                const Tensor& dlogits_MV) override {
    const auto [m, v] =
        CheckRows("CrossEntropyPartGradient", {&logits_MV, &dlogits_MV}, {}, {&targets_M, &lse_M});
    CrossEntropyPartBackward(Data(logits_MV), targets_M.i32().data(), first, Data(lse_M), m, v,
                             scale, Data(dlogits_MV));
  }

  double SquaredError(const Tensor& y, const Tensor& targets) override {
    return SquaredErrorForward(Data(y), Data(targets),
                               CheckSameSize("SquaredError", {&y, &targets}));
  }
  void SquaredErrorGradient(const Tensor& y, const Tensor& targets, float scale,
                            const Tensor& dy) override {
    const int64_t n = CheckSameSize("SquaredErrorGradient", {&y, &targets, &dy});
    SquaredErrorBackward(Data(y), Data(targets), scale, n, Data(dy));
  }

  double BinaryCrossEntropy(const Tensor& logits, const Tensor& targets) override {
    return BinaryCrossEntropyForward(Data(logits), Data(targets),
                                     CheckSameSize("BinaryCrossEntropy", {&logits, &targets}));
  }
  void BinaryCrossEntropyGradient(const Tensor& logits, const Tensor& targets, float scale,
                                  const Tensor& dlogits) override {
    const int64_t n = CheckSameSize("BinaryCrossEntropyGradient", {&logits, &targets, &dlogits});
    BinaryCrossEntropyBackward(Data(logits), Data(targets), scale, n, Data(dlogits));
  }
};

}  // namespace

std::unique_ptr<LossKernels> MakeLossKernels() { return std::make_unique<CpuLossKernels>(); }

}  // namespace cpu
}  // namespace pipelab
