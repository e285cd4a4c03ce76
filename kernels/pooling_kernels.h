// Pooling of images in [samples, height, width, channels].
//
//   PoolingShape s;
//   s.samples = 16; s.height = s.width = 28; s.channels = 32;
//   s.kernel_height = s.kernel_width = 3; s.pad_height = s.pad_width = 1;
//   backend->pooling().Max(s, x_NHWC, y_NHWC);
//
// Windows start every stride pixels from -pad; those that do not fit at the end are left out.
// A global average is one window of the image's size.
//
// Nothing is kept for the gradient but x: the maximum is looked for again. Measured against
// oneDNN's pooling, which stores where each maximum was: a quarter of a byte to a byte less for
// each byte of y, and no slower.
#ifndef PIPELAB_KERNELS_POOLING_KERNELS_H_
#define PIPELAB_KERNELS_POOLING_KERNELS_H_

#include <cstdint>

#include "kernels/shape_checks.h"
#include "kernels/tensor/tensor.h"

namespace pipelab {

struct PoolingShape {
  int64_t samples = 0, height = 0, width = 0, channels = 0;  // of x
  int64_t kernel_height = 1, kernel_width = 1;
  int64_t stride_height = 1, stride_width = 1;
  int64_t pad_height = 0, pad_width = 0;  // on either side, fewer than the kernel
  // Averages divide by the window's pixels inside the image (AmoebaNet, TensorFlow) or, with the
  // padding counted as zeros, by all of the kernel's. No maximum is ever a padding.
  bool count_padding = false;

  int64_t out_height() const {
    return (height + 2 * pad_height - kernel_height) / stride_height + 1;
  }
  int64_t out_width() const { return (width + 2 * pad_width - kernel_width) / stride_width + 1; }
};

class PoolingKernels {
 public:
  virtual ~PoolingKernels() = default;

  // A NaN in a window is its maximum.
  void Max(const PoolingShape& shape, const Tensor& x_NHWC, const Tensor& y_NHWC) {
    CheckPooling("MaxPool", shape, {&x_NHWC}, {&y_NHWC});
    DoMax(shape, x_NHWC, y_NHWC);
  }
  // The gradient goes to the window's first maximum, row by row.
  void MaxGradient(const PoolingShape& shape, const Tensor& dy_NHWC, const Tensor& x_NHWC,
                   const Tensor& dx_NHWC) {
    CheckPooling("MaxPoolGradient", shape, {&x_NHWC, &dx_NHWC}, {&dy_NHWC});
    DoMaxGradient(shape, dy_NHWC, x_NHWC, dx_NHWC);
  }
  void Average(const PoolingShape& shape, const Tensor& x_NHWC, const Tensor& y_NHWC) {
    CheckPooling("AveragePool", shape, {&x_NHWC}, {&y_NHWC});
    DoAverage(shape, x_NHWC, y_NHWC);
  }
  void AverageGradient(const PoolingShape& shape, const Tensor& dy_NHWC, const Tensor& dx_NHWC) {
    CheckPooling("AveragePoolGradient", shape, {&dx_NHWC}, {&dy_NHWC});
    DoAverageGradient(shape, dy_NHWC, dx_NHWC);
  }

 private:
  // What a backend does, once the shapes are checked.
  virtual void DoMax(const PoolingShape& shape, const Tensor& x_NHWC, const Tensor& y_NHWC) = 0;
  virtual void DoMaxGradient(const PoolingShape& shape, const Tensor& dy_NHWC, const Tensor& x_NHWC,
                             const Tensor& dx_NHWC) = 0;
  virtual void DoAverage(const PoolingShape& shape, const Tensor& x_NHWC, const Tensor& y_NHWC) = 0;
  virtual void DoAverageGradient(const PoolingShape& shape, const Tensor& dy_NHWC,
                                 const Tensor& dx_NHWC) = 0;
};

}  // namespace pipelab

#endif  // PIPELAB_KERNELS_POOLING_KERNELS_H_
