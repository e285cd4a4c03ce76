// Attention on one thread: blocks of query rows, each against the keys that it can see.
//
//   AttentionForward(call, {q, k, v}, &gemm, scores, out, lse);
//
// Q, k and v point to the first query, key and value (AttentionCall's offsets). `scores` holds
// call.BlockFloats() floats, and so does `dscores`.
#ifndef PIPELAB_KERNELS_CPU_ATTENTION_H_
#define PIPELAB_KERNELS_CPU_ATTENTION_H_

#include "kernels/attention_call.h"
#include "kernels/cpu/sgemm.h"

namespace pipelab {
namespace cpu {

template <class T>
struct AttentionData {
  T *q, *k, *v;
};

void AttentionForward(const AttentionCall& call, const AttentionData<const float>& in, Sgemm* gemm,
                      float* scores, float* out_MC, float* lse_SHQ);
void AttentionBackward(const AttentionCall& call, const float* dout_MC,
                       const AttentionData<const float>& in, const float* out_MC,
                       const float* lse_SHQ, Sgemm* gemm, float* scores, float* dscores,
                       const AttentionData<float>& gradient);

}  // namespace cpu
}  // namespace pipelab

#endif  // PIPELAB_KERNELS_CPU_ATTENTION_H_
