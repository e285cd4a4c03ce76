// Convolutions: the library's where it serves, with a copy of the weights in its layout for the
// length of the call, else plain loops.
//
// cuDNN's calls take x, w and y of one type, and bfloat16 numbers with sums in float32
// (PSEUDO_BFLOAT16_CONFIG), so its gradient of weights is rounded to bfloat16 in each call. The
// loops' is not, nor that of 1 x 1 pixel, which is a product.
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

  void DoForward(const ConvolutionShape& s, const Tensor& x_NHWC, const Tensor& w_HWIO,
                 const Tensor& b_O, const Tensor& y_NHWC) override {
    const Tensor scratch = Scratch(s);
    ByType(x_NHWC, [&](auto at) {
      if (Library(s, ConvolutionPass::kForward, at(x_NHWC), at(w_HWIO), at(y_NHWC), scratch)) {
        if (!b_O.empty()) {
          AddBias(*device_, at(b_O), OutPixels(s), s.out_channels, at(y_NHWC));
        }
        return;
      }
      Convolution(*device_, WindowOf(s), ChannelsOf(s), at(x_NHWC), at(w_HWIO), at(b_O),
                  at(y_NHWC));
    });
  }
  void DoInputGradient(const ConvolutionShape& s, const Tensor& dy_NHWC, const Tensor& w_HWIO,
                       const Tensor& dx_NHWC) override {
    const Tensor scratch = Scratch(s);
    ByType(dy_NHWC, [&](auto at) {
      if (Library(s, ConvolutionPass::kInputGradient, at(dx_NHWC), at(w_HWIO), at(dy_NHWC),
                  scratch)) {
        return;
      }
      ConvolutionInputGradient(*device_, WindowOf(s), ChannelsOf(s), at(dy_NHWC), at(w_HWIO),
                               at(dx_NHWC));
    });
  }
  void DoWeightGradient(const ConvolutionShape& s, const Tensor& x_NHWC, const Tensor& dy_NHWC,
                        const Tensor& dw_HWIO, const Tensor& db_O) override {
    const Tensor scratch = Scratch(s);
    ByType(dy_NHWC, [&](auto at) {
      if (x_NHWC.type() == DataType::kBFloat16 && IsProduct(s)) {
        AddProduct(s, at(x_NHWC), at(dy_NHWC), Data(dw_HWIO));
      } else if (!LibraryWeightGradient(s, at(x_NHWC), at(dy_NHWC), Data(dw_HWIO), scratch)) {
        ConvolutionWeightGradient(*device_, WindowOf(s), ChannelsOf(s), at(x_NHWC), at(dy_NHWC),
                                  Data(dw_HWIO));
      }
      if (db_O.empty()) return;
      AddColumnSums(*device_, at(dy_NHWC), OutPixels(s), s.out_channels, Data(db_O));
    });
  }

 private:
  static int64_t OutPixels(const ConvolutionShape& s) {
    return s.samples * s.out_height() * s.out_width();
  }
  static int64_t Taps(const ConvolutionShape& s) { return s.kernel_height * s.kernel_width; }

  Tensor Scratch(const ConvolutionShape& s) {
    return arena_->Allocate(DataType::kFloat32, {ConvolutionWorkspaceFloats(s)},
                            MemoryKind::kWorkspace);
  }

  // A call of the library. The weights in its layout lie at the start of the scratch, the library's
  // own memory behind them.
  template <class T>
  static ConvolutionCall CallOf(const ConvolutionShape& s, ConvolutionPass pass, T* x, T* y,
                                const Tensor& scratch) {
    constexpr int64_t kLine = 256;  // bytes, as the library likes its memory
    const int64_t size = Taps(s) * s.in_channels * s.out_channels * int64_t{sizeof(T)};
    const int64_t weights = (size + kLine - 1) / kLine * kLine;
    ConvolutionCall call;
    call.shape = s;
    call.pass = pass;
    call.bfloat16 = sizeof(T) == sizeof(BFloat16);
    call.x = x;
    call.w = Data(scratch);
    call.y = y;
    call.workspace = static_cast<char*>(call.w) + weights;
    call.workspace_bytes = scratch.bytes() - weights;
    return call;
  }

  // These two return whether the library did it.
  template <class T>
  bool Library(const ConvolutionShape& s, ConvolutionPass pass, T* x, const T* w, T* y,
               const Tensor& scratch) {
    if (s.depthwise || device_->failed()) return false;
    const ConvolutionCall call = CallOf(s, pass, x, y, scratch);
    WeightsToLibrary(*device_, w, Taps(s), s.in_channels, s.out_channels, static_cast<T*>(call.w));
    return device_->Convolve(call);
  }
  // The library's gradient of bfloat16 images is bfloat16: it is rounded before it is added.
  template <class T>
  bool LibraryWeightGradient(const ConvolutionShape& s, T* x, T* dy, float* dw,
                             const Tensor& scratch) {
    if (s.depthwise || device_->failed()) return false;
    const ConvolutionCall call = CallOf(s, ConvolutionPass::kWeightGradient, x, dy, scratch);
    if (!device_->Convolve(call)) return false;
    AddWeightsOfLibrary(*device_, static_cast<const T*>(call.w), Taps(s), s.in_channels,
                        s.out_channels, dw);
    return true;
  }

  // With 1 x 1 pixel it is a product of matrices: there bfloat16 factors have a float32 sum.
  static bool IsProduct(const ConvolutionShape& s) {
    return !s.depthwise && Taps(s) == 1 && s.stride_height == 1 && s.stride_width == 1;
  }
  void AddProduct(const ConvolutionShape& s, const void* x_MI, const void* dy_MO, float* dw_IO) {
    MatmulCall call;
    call.type = MatmulCall::Type::kBFloat16Factors;
    call.transpose_a = call.add = true;
    call.m = s.in_channels;
    call.n = s.out_channels;
    call.k = OutPixels(s);
    call.a = x_MI;
    call.b = dy_MO;
    call.c = dw_IO;
    device_->Matmul(call);
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
