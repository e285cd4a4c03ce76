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
