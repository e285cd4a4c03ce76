// Convolutions of images, plain and depthwise.
//
//   ConvolutionShape s;
//   s.samples = 16; s.height = s.width = 28; s.in_channels = 32; s.out_channels = 64;
//   s.kernel_height = s.kernel_width = 3; s.stride_height = s.stride_width = 2;
//   s.pad_height = s.pad_width = 1;
//   Tensor y = backend->Allocate({s.samples, s.out_height(), s.out_width(), s.out_channels});
//   backend->convolution().Forward(s, x_NHWC, w_HWIO, /*b_O=*/Tensor(), y);
//
// A transposed convolution is InputGradient run forwards, and Forward its input gradient.
//
// Layout. Images are [samples, height, width, channels]: rows of channels, as every other kernel
// takes them. Weights are [kernel height, kernel width, in, out], and [kernel height, kernel width,
// channels] for depthwise ones, on every backend: parameters have one layout everywhere, and a
// library that wants another gets a copy for the length of the call. Measured on an AVX-512 core,
// oneDNN is as fast on these images as on its own blocked layout (0.8 to 1.2 times; twice to four
// times as fast as with channels first), and copies of the weights cost some 1% of a call (6% where
// images are small and channels many: 256 of them on 7 x 7 pixels).
//
// Memory. A call charges exactly ConvolutionWorkspaceFloats(shape) floats of scratch, on every
// backend and processor: room for the weights with channels rounded up to vectors, and for the
// library's own scratch, which is taken from it. The CPU backend takes the first of oneDNN's
// implementations that fits into it (on AVX-512 always its best; on AVX2 the input gradient of a
// kernel with unequal strides falls back to plain loops). models/graph/convolution_workspace.h
// predicts the figure.
#ifndef PIPELAB_KERNELS_CONVOLUTION_KERNELS_H_
#define PIPELAB_KERNELS_CONVOLUTION_KERNELS_H_

#include <cstdint>

#include "kernels/shape_checks.h"
#include "kernels/tensor/tensor.h"

namespace pipelab {

struct ConvolutionShape {
  int64_t samples = 0, height = 0, width = 0;  // of x
  int64_t in_channels = 0, out_channels = 0;
  int64_t kernel_height = 1, kernel_width = 1;
  int64_t stride_height = 1, stride_width = 1;
  int64_t pad_height = 0, pad_width = 0;  // zeros on either side, fewer than the kernel
  bool depthwise = false;                 // each channel by itself: out_channels = in_channels

  int64_t out_height() const {
    return (height + 2 * pad_height - kernel_height) / stride_height + 1;
  }
  int64_t out_width() const { return (width + 2 * pad_width - kernel_width) / stride_width + 1; }
  // Products and sums of the forward, and of each gradient.
  double flops() const {
    return 2.0 * samples * out_height() * out_width() * kernel_height * kernel_width * in_channels *
           (depthwise ? 1 : out_channels);
  }
};

enum class ConvolutionPass : uint8_t { kForward, kInputGradient, kWeightGradient };

// Room for oneDNN's fixed scratch (8 KiB and alignment).
inline constexpr int64_t kConvolutionScratchFloats = 4096;

// Scratch of one call. A strided convolution with a 1 x 1 kernel gathers one sample's pixels first.
inline int64_t ConvolutionWorkspaceFloats(const ConvolutionShape& s) {
  constexpr int64_t kVector = 16;  // floats of the widest register
  const int64_t in = (s.in_channels + kVector - 1) / kVector * kVector;
  const int64_t out = (s.out_channels + kVector - 1) / kVector * kVector;
  const int64_t taps = s.kernel_height * s.kernel_width;
  const bool gathers = taps == 1 && (s.stride_height > 1 || s.stride_width > 1);
  return taps * (s.depthwise ? in : in * out) +
         (gathers ? s.out_height() * s.out_width() * in : 0) + kConvolutionScratchFloats;
}

class ConvolutionKernels {
 public:
  virtual ~ConvolutionKernels() = default;

  // b_O may be empty.
  void Forward(const ConvolutionShape& shape, const Tensor& x_NHWC, const Tensor& w_HWIO,
               const Tensor& b_O, const Tensor& y_NHWC) {
    CheckConvolution("Convolution", shape, x_NHWC, w_HWIO, b_O, y_NHWC);
    DoForward(shape, x_NHWC, w_HWIO, b_O, y_NHWC);
  }
  void InputGradient(const ConvolutionShape& shape, const Tensor& dy_NHWC, const Tensor& w_HWIO,
                     const Tensor& dx_NHWC) {
    CheckConvolution("ConvolutionInputGradient", shape, dx_NHWC, w_HWIO, Tensor(), dy_NHWC);
    DoInputGradient(shape, dy_NHWC, w_HWIO, dx_NHWC);
  }
  // Adds to dw, and the sums of dy over samples and pixels to db where it is not empty. A library
  // may round what it adds to dw to the type of x.
  void WeightGradient(const ConvolutionShape& shape, const Tensor& x_NHWC, const Tensor& dy_NHWC,
                      const Tensor& dw_HWIO, const Tensor& db_O) {
    CheckConvolution("ConvolutionWeightGradient", shape, x_NHWC, dw_HWIO, db_O, dy_NHWC);
    DoWeightGradient(shape, x_NHWC, dy_NHWC, dw_HWIO, db_O);
  }

 private:
  // What a backend does, once the shapes are checked.
  virtual void DoForward(const ConvolutionShape& shape, const Tensor& x_NHWC, const Tensor& w_HWIO,
                         const Tensor& b_O, const Tensor& y_NHWC) = 0;
  virtual void DoInputGradient(const ConvolutionShape& shape, const Tensor& dy_NHWC,
                               const Tensor& w_HWIO, const Tensor& dx_NHWC) = 0;
  virtual void DoWeightGradient(const ConvolutionShape& shape, const Tensor& x_NHWC,
                                const Tensor& dy_NHWC, const Tensor& dw_HWIO,
                                const Tensor& db_O) = 0;
};

}  // namespace pipelab

#endif  // PIPELAB_KERNELS_CONVOLUTION_KERNELS_H_
