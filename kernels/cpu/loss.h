// Losses that look at each element alone.
//
//   double sum = SquaredErrorForward(y, targets, n);
//
// n elements each; a gradient may be written over the first input.
#ifndef PIPELAB_KERNELS_CPU_LOSS_H_
#define PIPELAB_KERNELS_CPU_LOSS_H_

#include <cstdint>

namespace pipelab {
namespace cpu {

double SquaredErrorForward(const float* y, const float* targets, int64_t n);
void SquaredErrorBackward(const float* y, const float* targets, float scale, int64_t n, float* dy);
double BinaryCrossEntropyForward(const float* logits, const float* targets, int64_t n);
void BinaryCrossEntropyBackward(const float* logits, const float* targets, float scale, int64_t n,
                                float* dlogits);

}  // namespace cpu
}  // namespace pipelab

#endif  // PIPELAB_KERNELS_CPU_LOSS_H_
