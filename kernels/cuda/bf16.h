// Kernels of a Transformer block in bfloat16 with float32 arithmetic, beside functions.h.
// Row-major; `Bf16` is the stored half.
//
//   bf16::LayerNorm(queue, x, gamma, beta, m, c, y, mean, rstd);
#ifndef PIPELAB_KERNELS_CUDA_BF16_H_
#define PIPELAB_KERNELS_CUDA_BF16_H_

#include <cstdint>

#include "kernels/cuda/queue.h"

namespace pipelab {
namespace gpu {
namespace bf16 {

using Bf16 = uint16_t;

void FromFloat(Queue& queue, const float* x, int64_t n, Bf16* y);
void ToFloat(Queue& queue, const Bf16* x, int64_t n, float* y);
void Add(Queue& queue, const Bf16* a, const Bf16* b, int64_t n, Bf16* y);
void LayerNorm(Queue& queue, const Bf16* x, const float* gamma, const float* beta, int64_t m,
               int64_t c, Bf16* y, float* mean, float* rstd);
// dx = gradient + residual, the gradient that goes past the norm; it may be null.
void LayerNormInputGradient(Queue& queue, const Bf16* dy, const Bf16* x, const float* gamma,
                            const float* mean, const float* rstd, const Bf16* residual, int64_t m,
                            int64_t c, Bf16* dx);
void LayerNormWeightGradient(Queue& queue, const Bf16* dy, const Bf16* x, const float* mean,
                             const float* rstd, int64_t m, int64_t c, float* dgamma, float* dbeta);
void AddColumnSums(Queue& queue, const Bf16* dy, int64_t m, int64_t n, float* db);
// Scores [matrices, tokens, tokens], in place: row i sees its first i + 1 columns, the rest is 0.
void CausalSoftmax(Queue& queue, int64_t matrices, int64_t tokens, Bf16* scores);
// dp in place: scale p (dp - sum(p dp)).
void CausalSoftmaxGradient(Queue& queue, const Bf16* p, int64_t matrices, int64_t tokens,
                           float scale, Bf16* dp);

}  // namespace bf16
}  // namespace gpu
}  // namespace pipelab

#endif  // PIPELAB_KERNELS_CUDA_BF16_H_
