#include <memory>

#include "kernels/cpu/groups.h"
#include "kernels/cpu/optimizer.h"
#include "kernels/shape_checks.h"

namespace pipelab {
namespace cpu {
namespace {

class CpuOptimizerKernels final : public OptimizerKernels {
 public:
  void DoAdam(const AdamOptions& options, const Tensor& w, const Tensor& dw, const Tensor& m,
              const Tensor& v) override {
    AdamStep(options, Data(dw), w.size(), Data(w), Data(m), Data(v));
  }
  void DoSgd(const SgdOptions& options, const Tensor& w, const Tensor& dw,
             const Tensor& velocity) override {
    const int64_t n = w.size();
    SgdStep(options, Data(dw), n, Data(w), velocity.empty() ? nullptr : Data(velocity));
  }
  void DoRmsProp(const RmsPropOptions& options, const Tensor& w, const Tensor& dw,
                 const Tensor& squares, const Tensor& velocity) override {
    const int64_t n = w.size();
    RmsPropStep(options, Data(dw), n, Data(w), Data(squares),
                velocity.empty() ? nullptr : Data(velocity));
  }
  double SumOfSquares(const Tensor& x) override { return cpu::SumOfSquares(Data(x), x.size()); }
  void Scale(const Tensor& x, float factor) override { ScaleVector(factor, x.size(), Data(x)); }
};

}  // namespace

std::unique_ptr<OptimizerKernels> MakeOptimizerKernels() {
  return std::make_unique<CpuOptimizerKernels>();
}

}  // namespace cpu
}  // namespace pipelab
