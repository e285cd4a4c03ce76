// Kernels that touch each element once: bound by memory when they are vectorised.
//
//   GeluForward(x, n, y);
//
// n elements each. Outputs may be one of the inputs, and must not overlap them otherwise.
#ifndef PIPELAB_KERNELS_CPU_ELEMENTWISE_H_
#define PIPELAB_KERNELS_CPU_ELEMENTWISE_H_

#include <cstdint>

#include "kernels/backend.h"

namespace pipelab {
namespace cpu {

void GeluForward(const float* x, int64_t n, float* y);
void GeluBackward(const float* dy, const float* x, int64_t n, float* dx);
// The same with erf.
void ExactGeluForward(const float* x, int64_t n, float* y);
void ExactGeluBackward(const float* dy, const float* x, int64_t n, float* dx);
// Rows of f gates and then f values; dgu may be gu.
void GateForward(GateKind kind, const float* gu, int64_t m, int64_t f, float* y);
void GateBackward(GateKind kind, const float* dy, const float* gu, int64_t m, int64_t f,
                  float* dgu);
void ReluForward(const float* x, int64_t n, float* y);
void ReluBackward(const float* dy, const float* y, int64_t n, float* dx);
void AddVectors(const float* a, const float* b, int64_t n, float* y);
// y += factor x
void AddScaled(float factor, const float* x, int64_t n, float* y);
// Adds b_N to each of the rows of y_MN.
void AddBias(const float* b_N, int64_t m, int64_t n, float* y_MN);
// sum_N += the column sums of x_MN.
void AddColumnSums(const float* x_MN, int64_t m, int64_t n, float* sum_N);

// y = dropout(x), or y = a + dropout(x) where a is not null.
void DropoutForward(const float* a, const float* x, const DropoutMask& mask, int64_t n, float* y);

// Heads at the begin of rows of `columns`; turns: head_size floats a row, cosines and then sines.
void RotateHeads(const float* turns, bool back, int64_t tokens, int64_t heads, int64_t head_size,
                 int64_t head_stride, int64_t columns, float* x);

}  // namespace cpu
}  // namespace pipelab

#endif  // PIPELAB_KERNELS_CPU_ELEMENTWISE_H_
