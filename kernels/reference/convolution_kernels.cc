#include <memory>

#include "kernels/reference/functions.h"
#include "kernels/reference/groups.h"
#include "kernels/reference/wide.h"
#include "kernels/shape_checks.h"

namespace pipelab {
namespace reference {
namespace {

class ReferenceConvolutionKernels final : public ConvolutionKernels {
 public:
  explicit ReferenceConvolutionKernels(Arena* arena) : arena_(arena) {}

  void DoForward(const ConvolutionShape& shape, const Tensor& x_NHWC, const Tensor& w_HWIO,
                 const Tensor& b_O, const Tensor& y_NHWC) override {
    const auto scratch = Scratch(shape);
    Convolution(shape, Wide(x_NHWC), Wide(w_HWIO), Wide(b_O), WideResult(y_NHWC));
  }
  void DoInputGradient(const ConvolutionShape& shape, const Tensor& dy_NHWC, const Tensor& w_HWIO,
                       const Tensor& dx_NHWC) override {
    const auto scratch = Scratch(shape);
    ConvolutionInputGradient(shape, Wide(dy_NHWC), Wide(w_HWIO), WideResult(dx_NHWC));
  }
  void DoWeightGradient(const ConvolutionShape& shape, const Tensor& x_NHWC, const Tensor& dy_NHWC,
                        const Tensor& dw_HWIO, const Tensor& db_O) override {
    const auto scratch = Scratch(shape);
    ConvolutionWeightGradient(shape, Wide(x_NHWC), Wide(dy_NHWC), WideResult(dw_HWIO),
                              WideResult(db_O));
  }

 private:
  std::shared_ptr<Charge> Scratch(const ConvolutionShape& shape) {
    return arena_->Reserve(Bytes(4 * ConvolutionWorkspaceFloats(shape)), MemoryKind::kWorkspace);
  }

  Arena* const arena_;
};

}  // namespace

std::unique_ptr<ConvolutionKernels> MakeConvolutionKernels(Arena* arena) {
  return std::make_unique<ReferenceConvolutionKernels>(arena);
}

}  // namespace reference
}  // namespace pipelab
