// Softmax over the scores of causal attention, where these are products of a library.
#include <cmath>

#include "kernels/cuda/functions.h"
#include "kernels/cuda/launch.h"

namespace pipelab {
namespace gpu {

void CausalSoftmax(Queue& queue, int64_t matrices, int64_t tokens, BFloat16* scores) {
  ForEachBlock(queue, "CausalSoftmax", matrices * tokens, tokens,
               [=] PIPELAB_DEVICE(Block & block, int64_t row) {
                 BFloat16* const at = scores + row * tokens;
                 const int64_t seen = row % tokens + 1;
                 float* const e = block.shared();
                 const float most = block.Max(seen, [&](int64_t j) { return at[j]; });
                 block.ForEach(seen, [&](int64_t j) { e[j] = expf(at[j] - most); });
                 const float inverse = 1.0f / block.Sum(seen, [&](int64_t j) { return e[j]; });
                 block.ForEach(tokens,
                               [&](int64_t j) { at[j] = j < seen ? e[j] * inverse : 0.0f; });
               });
}

void CausalSoftmaxGradient(Queue& queue, const BFloat16* p, int64_t matrices, int64_t tokens,
                           float scale, BFloat16* dp) {
  ForEachBlock(queue, "CausalSoftmaxGradient", matrices * tokens, 0,
               [=] PIPELAB_DEVICE(Block & block, int64_t row) {
                 const BFloat16* const own_p = p + row * tokens;
                 BFloat16* const own_dp = dp + row * tokens;
                 const int64_t seen = row % tokens + 1;
                 const float mean =
                     block.Sum(seen, [&](int64_t j) { return own_p[j] * own_dp[j]; });
                 block.ForEach(tokens, [&](int64_t j) {
                   const float d = scale * own_p[j] * (own_dp[j] - mean);
                   own_dp[j] = j < seen ? d : 0.0f;
                 });
               });
}

}  // namespace gpu
}  // namespace pipelab
