// Attention on one thread: blocks of query rows, each against the keys that it can see.
//
//   AttentionForward(shape, qkv, &gemm, scores, out, lse);
//
// `scores` holds AttentionBlockFloats(shape) floats, and so does `dscores`
// (kernels/shape_checks.h).
#ifndef PIPELAB_KERNELS_CPU_ATTENTION_H_
#define PIPELAB_KERNELS_CPU_ATTENTION_H_

#include "kernels/backend.h"
#include "kernels/cpu/sgemm.h"

namespace pipelab {
namespace cpu {

void AttentionForward(const AttentionShape& shape, const float* qkv_M3C, Sgemm* gemm, float* scores,
                      float* out_MC, float* lse_SHT);
void AttentionBackward(const AttentionShape& shape, const float* dout_MC, const float* qkv_M3C,
                       const float* out_MC, const float* lse_SHT, Sgemm* gemm, float* scores,
                       float* dscores, float* dqkv_M3C);

}  // namespace cpu
}  // namespace pipelab

#endif  // PIPELAB_KERNELS_CPU_ATTENTION_H_
