// Convolutions: the library's where it serves, with a copy of the weights in its layout for the
// length of the call, else plain loops.
#include <memory>

#include "kernels/cuda/functions.h"
#include "kernels/cuda/groups.h"
#include "kernels/shape_checks.h"

namespace pipelab {
namespace gpu {
namespace {

Window WindowOf(const ConvolutionShape& s) {
  return {s.samples,      s.height,        s.width,        s.out_height(),
          s.out_width(),  s.kernel_height, s.kernel_width, s.stride_height,
          s.stride_width, s.pad_height,    s.pad_width};
}

Channels ChannelsOf(const ConvolutionShape& s) {
  return {s.in_channels, s.out_channels, s.depthwise};
}

class CudaConvolutionKernels final : public ConvolutionKernels {
 public:
  CudaConvolutionKernels(Arena* arena, Device* device) : arena_(arena), device_(device) {}

  void Forward(const ConvolutionShape& s, const Tensor& x_NHWC, const Tensor& w_HWIO,
               const Tensor& b_O, const Tensor& y_NHWC) override {
    CheckConvolution("Convolution", s, x_NHWC, w_HWIO, b_O, y_NHWC);
    const Tensor scratch = Scratch(s);
    const float* const bias = b_O.empty() ? nullptr : Data(b_O);
    if (Library(s, ConvolutionPass::kForward, x_NHWC, w_HWIO, y_NHWC, scratch)) {
      const int64_t pixels = s.samples * s.out_height() * s.out_width();
      if (bias != nullptr) AddBias(*device_, bias, pixels, s.out_channels, Data(y_NHWC));
      return;
    }
    Convolution(*device_, WindowOf(s), ChannelsOf(s), Data(x_NHWC), Data(w_HWIO), bias,
                Data(y_NHWC));
  }
  void InputGradient(const ConvolutionShape& s, const Tensor& dy_NHWC, const Tensor& w_HWIO,
                     const Tensor& dx_NHWC) override {
    CheckConvolution("ConvolutionInputGradient", s, dx_NHWC, w_HWIO, Tensor(), dy_NHWC);
    const Tensor scratch = Scratch(s);
    if (Library(s, ConvolutionPass::kInputGradient, dx_NHWC, w_HWIO, dy_NHWC, scratch)) return;
    ConvolutionInputGradient(*device_, WindowOf(s), ChannelsOf(s), Data(dy_NHWC), Data(w_HWIO),
                             Data(dx_NHWC));
  }
  void WeightGradient(const ConvolutionShape& s, const Tensor& x_NHWC, const Tensor& dy_NHWC,
                      const Tensor& dw_HWIO, const Tensor& db_O) override {
    CheckConvolution("ConvolutionWeightGradient", s, x_NHWC, dw_HWIO, db_O, dy_NHWC);
    const Tensor scratch = Scratch(s);
    if (!Library(s, ConvolutionPass::kWeightGradient, x_NHWC, dw_HWIO, dy_NHWC, scratch)) {
      ConvolutionWeightGradient(*device_, WindowOf(s), ChannelsOf(s), Data(x_NHWC), Data(dy_NHWC),
                                Data(dw_HWIO));
    }
    if (db_O.empty()) return;
    AddColumnSums(*device_, Data(dy_NHWC), s.samples * s.out_height() * s.out_width(),
                  s.out_channels, Data(db_O));
  }

 private:
  Tensor Scratch(const ConvolutionShape& s) {
    return arena_->Allocate(DataType::kFloat32, {ConvolutionWorkspaceFloats(s)},
                            MemoryKind::kWorkspace);
  }

  // The weights' copy lies at the start of the scratch, the library's own behind it.
  bool Library(const ConvolutionShape& s, ConvolutionPass pass, const Tensor& x, const Tensor& w,
               const Tensor& y, const Tensor& scratch) {
    if (s.depthwise || device_->failed()) return false;
    constexpr int64_t kLine = 64;  // floats: 256 bytes, as the library likes its memory
    const int64_t taps = s.kernel_height * s.kernel_width;
    const int64_t weights = (w.size() + kLine - 1) / kLine * kLine;
    ConvolutionCall call;
    call.shape = s;
    call.pass = pass;
    call.x = Data(x);
    call.w = Data(scratch);
    call.y = Data(y);
    call.workspace = Data(scratch) + weights;
    call.workspace_bytes = 4 * (scratch.size() - weights);
    const bool writes_weights = pass == ConvolutionPass::kWeightGradient;
    if (!writes_weights) {
      WeightsToLibrary(*device_, Data(w), taps, s.in_channels, s.out_channels, call.w);
    }
    if (!device_->Convolve(call)) return false;
    if (writes_weights) {
      AddWeightsOfLibrary(*device_, call.w, taps, s.in_channels, s.out_channels, Data(w));
    }
    return true;
  }

  Arena* const arena_;
  Device* const device_;
};

}  // namespace

std::unique_ptr<ConvolutionKernels> MakeConvolutionKernels(Arena* arena, Device* device) {
  return std::make_unique<CudaConvolutionKernels>(arena, device);
}

}  // namespace gpu
}  // namespace pipelab
