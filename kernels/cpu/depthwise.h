// The weight gradient of a depthwise convolution, where oneDNN has none that is fast and small.
//
//   DepthwiseWeightGradient(shape, x_NHWC, dy_NHWC, dw_HWC);   // adds to dw
#ifndef PIPELAB_KERNELS_CPU_DEPTHWISE_H_
#define PIPELAB_KERNELS_CPU_DEPTHWISE_H_

#include "kernels/convolution_kernels.h"

namespace pipelab {
namespace cpu {

void DepthwiseWeightGradient(const ConvolutionShape& shape, const float* x_NHWC,
                             const float* dy_NHWC, float* dw_HWC);

}  // namespace cpu
}  // namespace pipelab

#endif  // PIPELAB_KERNELS_CPU_DEPTHWISE_H_
