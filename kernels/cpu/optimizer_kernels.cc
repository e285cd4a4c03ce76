#include <memory>

#include "kernels/cpu/groups.h"
#include "kernels/cpu/optimizer.h"
#include "kernels/shape_checks.h"

namespace pipelab {
namespace cpu {
namespace {

class CpuOptimizerKernels final : public OptimizerKernels {
 public:
  void Adam(const AdamOptions& options, const Tensor& w, const Tensor& dw, const Tensor& m,
            const Tensor& v) override {
    AdamStep(options, Data(dw), CheckSameSize("Adam", {&w, &dw, &m, &v}), Data(w), Data(m),
             Data(v));
  }
  void Sgd(const SgdOptions& options, const Tensor& w, const Tensor& dw,
           const Tensor& velocity) override {
    const int64_t n = CheckSameSize("Sgd", {&w, &dw});
    CheckVelocity("Sgd", w, options.momentum, velocity);
    SgdStep(options, Data(dw), n, Data(w), velocity.empty() ? nullptr : Data(velocity));
  }
  void RmsProp(const RmsPropOptions& options, const Tensor& w, const Tensor& dw,
               const Tensor& squares, const Tensor& velocity) override {
    const int64_t n = CheckSameSize("RmsProp", {&w, &dw, &squares});
    CheckVelocity("RmsProp", w, options.momentum, velocity);
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
