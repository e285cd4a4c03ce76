// Pooling, vectorised over channels.
//
//   MaxPoolForward(shape, x_NHWC, y_NHWC);
#ifndef PIPELAB_KERNELS_CPU_POOLING_H_
#define PIPELAB_KERNELS_CPU_POOLING_H_

#include "kernels/pooling_kernels.h"

namespace pipelab {
namespace cpu {

void MaxPoolForward(const PoolingShape& shape, const float* x, float* y);
void MaxPoolBackward(const PoolingShape& shape, const float* dy, const float* x, float* dx);
void AveragePoolForward(const PoolingShape& shape, const float* x, float* y);
void AveragePoolBackward(const PoolingShape& shape, const float* dy, float* dx);

}  // namespace cpu
}  // namespace pipelab

#endif  // PIPELAB_KERNELS_CPU_POOLING_H_
