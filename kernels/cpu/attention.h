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
// N of M queries of so many heads, each with `size` values.
void MergeAttention(int64_t n, int64_t m, int64_t heads, int64_t size, const float* part_NC,
                    const float* part_lse_HN, float* out_MC, float* lse_HM);

}  // namespace cpu
}  // namespace pipelab

#endif  // PIPELAB_KERNELS_CPU_ATTENTION_H_
