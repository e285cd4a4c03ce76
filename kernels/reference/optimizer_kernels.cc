#include <memory>

#include "kernels/reference/functions.h"
#include "kernels/reference/groups.h"
#include "kernels/reference/wide.h"
#include "kernels/shape_checks.h"

namespace pipelab {
namespace reference {
namespace {

class ReferenceOptimizerKernels final : public OptimizerKernels {
 public:
  void DoAdam(const AdamOptions& options, const Tensor& w, const Tensor& dw, const Tensor& m,
              const Tensor& v) override {
    reference::Adam(options, Wide(dw), WideResult(w), WideResult(m), WideResult(v));
  }
  void DoSgd(const SgdOptions& options, const Tensor& w, const Tensor& dw,
             const Tensor& velocity) override {
    reference::Sgd(options, Wide(dw), WideResult(w), WideResult(velocity));
  }
  void DoRmsProp(const RmsPropOptions& options, const Tensor& w, const Tensor& dw,
                 const Tensor& squares, const Tensor& velocity) override {
    reference::RmsProp(options, Wide(dw), WideResult(w), WideResult(squares), WideResult(velocity));
  }
  double SumOfSquares(const Tensor& x) override { return reference::SumOfSquares(Wide(x)); }
  void Scale(const Tensor& x, float factor) override {
    for (float& v : x.f32()) v *= factor;
  }
};

}  // namespace

std::unique_ptr<OptimizerKernels> MakeOptimizerKernels() {
  return std::make_unique<ReferenceOptimizerKernels>();
}

}  // namespace reference
}  // namespace pipelab
