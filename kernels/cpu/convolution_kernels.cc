#include <memory>

#include "kernels/cpu/convolution.h"
#include "kernels/cpu/elementwise.h"
#include "kernels/cpu/groups.h"
#include "kernels/shape_checks.h"

namespace pipelab {
namespace cpu {
namespace {

class CpuConvolutionKernels final : public ConvolutionKernels {
 public:
  CpuConvolutionKernels(Arena* arena, LibraryClock* clock) : arena_(arena), cache_(clock) {}

  void DoForward(const ConvolutionShape& shape, const Tensor& x_NHWC, const Tensor& w_HWIO,
                 const Tensor& b_O, const Tensor& y_NHWC) override {
    const Tensor scratch = Scratch(shape);
    cache_.Forward(shape, Data(x_NHWC), Data(w_HWIO), b_O.empty() ? nullptr : Data(b_O),
                   Data(scratch), Data(y_NHWC));
  }
  void DoInputGradient(const ConvolutionShape& shape, const Tensor& dy_NHWC, const Tensor& w_HWIO,
                       const Tensor& dx_NHWC) override {
    const Tensor scratch = Scratch(shape);
    cache_.InputGradient(shape, Data(dy_NHWC), Data(w_HWIO), Data(scratch), Data(dx_NHWC));
  }
  void DoWeightGradient(const ConvolutionShape& shape, const Tensor& x_NHWC, const Tensor& dy_NHWC,
                        const Tensor& dw_HWIO, const Tensor& db_O) override {
    const Tensor scratch = Scratch(shape);
    cache_.WeightGradient(shape, Data(x_NHWC), Data(dy_NHWC), Data(scratch), Data(dw_HWIO));
    if (db_O.empty()) return;
    AddColumnSums(Data(dy_NHWC), dy_NHWC.size() / shape.out_channels, shape.out_channels,
                  Data(db_O));
  }

 private:
  Tensor Scratch(const ConvolutionShape& shape) {
    return arena_->Allocate(DataType::kFloat32, {ConvolutionWorkspaceFloats(shape)},
                            MemoryKind::kWorkspace);
  }

  Arena* const arena_;
  ConvolutionCache cache_;
};

}  // namespace

std::unique_ptr<ConvolutionKernels> MakeConvolutionKernels(Arena* arena, LibraryClock* clock) {
  return std::make_unique<CpuConvolutionKernels>(arena, clock);
}

}  // namespace cpu
}  // namespace pipelab
