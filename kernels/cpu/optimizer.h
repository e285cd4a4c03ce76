// Optimizer steps: one pass over the parameter and its state, bound by memory.
//
//   SgdStep(options, dw, n, w, velocity);
//
// n elements each; `velocity` may be null where there is no momentum.
#ifndef PIPELAB_KERNELS_CPU_OPTIMIZER_H_
#define PIPELAB_KERNELS_CPU_OPTIMIZER_H_

#include <cstdint>

#include "kernels/optimizer_kernels.h"

namespace pipelab {
namespace cpu {

void AdamStep(const AdamOptions& options, const float* dw, int64_t n, float* w, float* m, float* v);
void SgdStep(const SgdOptions& options, const float* dw, int64_t n, float* w, float* velocity);
void RmsPropStep(const RmsPropOptions& options, const float* dw, int64_t n, float* w,
                 float* squares, float* velocity);
double SumOfSquares(const float* x, int64_t n);
void ScaleVector(float factor, int64_t n, float* x);

}  // namespace cpu
}  // namespace pipelab

#endif  // PIPELAB_KERNELS_CPU_OPTIMIZER_H_
