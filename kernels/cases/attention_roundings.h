// How far attention with bfloat16 factors may be off before its results are rounded.
//
//   bounds[i] += OutRoundings(CallOf(shape), q, kv, lse)[i];
//
// Tensor cores take probabilities p, and the gradients ds of scores, rounded to 8 bits, and add
// their products with v, dout, k or q in float32. Each term of such a sum is then off by up to 2^-8
// of it; these roundings are independent and centred, so the sum is off by no more than the sum of
// what its terms are off, and by four times the root of the squares' sum (Higham and Mary, 2019:
// kernel_case.h), whichever is less.
#ifndef PIPELAB_KERNELS_CASES_ATTENTION_ROUNDINGS_H_
#define PIPELAB_KERNELS_CASES_ATTENTION_ROUNDINGS_H_

#include <vector>

#include "kernels/attention_call.h"
#include "kernels/tensor/tensor.h"

namespace pipelab {

// The roundings of each element of out = p v.
std::vector<double> OutRoundings(const AttentionCall& call, const Tensor& q, const Tensor& kv,
                                 const Tensor& lse);

// The roundings of each element of dq = ds k, and of dkv: ds^T q and p^T dout. In self attention
// both are one tensor, of which each has its parts.
struct GradientRoundings {
  std::vector<double> dq, dkv;
};
GradientRoundings AttentionGradientRoundings(const AttentionCall& call, const Tensor& dout,
                                             const Tensor& q, const Tensor& kv, const Tensor& out,
                                             const Tensor& lse);

}  // namespace pipelab

#endif  // PIPELAB_KERNELS_CASES_ATTENTION_ROUNDINGS_H_
