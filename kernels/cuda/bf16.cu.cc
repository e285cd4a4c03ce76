#include "kernels/cuda/bf16.h"

#include <cmath>

#include "kernels/cuda/bf16_number.h"
#include "kernels/cuda/launch.h"
#include "kernels/cuda/sums.h"

namespace pipelab {
namespace gpu {
namespace bf16 {

void FromFloat(Queue& queue, const float* x, int64_t n, Bf16* y) {
  ForEach(queue, "FromFloat", n, [=] PIPELAB_DEVICE(int64_t i) { y[i] = ToBf16(x[i]); });
}

void ToFloat(Queue& queue, const Bf16* x, int64_t n, float* y) {
  ForEach(queue, "ToFloat", n, [=] PIPELAB_DEVICE(int64_t i) { y[i] = FromBf16(x[i]); });
}

void Add(Queue& queue, const Bf16* a, const Bf16* b, int64_t n, Bf16* y) {
  ForEach(queue, "AddBf16", n,
          [=] PIPELAB_DEVICE(int64_t i) { y[i] = ToBf16(FromBf16(a[i]) + FromBf16(b[i])); });
}

void LayerNorm(Queue& queue, const Bf16* x, const float* gamma, const float* beta, int64_t m,
               int64_t c, Bf16* y, float* mean, float* rstd) {
  ForEachBlock(queue, "LayerNormBf16", m, 0, [=] PIPELAB_DEVICE(Block & block, int64_t row) {
    const Bf16* const in = x + row * c;
    const float center =
        block.Sum(c, [&](int64_t j) { return FromBf16(in[j]); }) / static_cast<float>(c);
    const float squares = block.Sum(c, [&](int64_t j) {
      const float off = FromBf16(in[j]) - center;
      return off * off;
    });
    const float scale = 1.0f / sqrtf(squares / static_cast<float>(c) + 1e-5f);
    block.ForEach(c, [&](int64_t j) {
      y[row * c + j] = ToBf16((FromBf16(in[j]) - center) * scale * gamma[j] + beta[j]);
    });
    block.ForEach(1, [&](int64_t) {
      mean[row] = center;
      rstd[row] = scale;
    });
  });
}

void LayerNormInputGradient(Queue& queue, const Bf16* dy, const Bf16* x, const float* gamma,
                            const float* mean, const float* rstd, const Bf16* residual, int64_t m,
                            int64_t c, Bf16* dx) {
  ForEachBlock(
      queue, "LayerNormInputGradientBf16", m, 0, [=] PIPELAB_DEVICE(Block & block, int64_t row) {
        const int64_t at = row * c;
        const float center = mean[row], scale = rstd[row];
        const float g_sum =
            block.Sum(c, [&](int64_t j) { return FromBf16(dy[at + j]) * gamma[j]; });
        const float gx_sum = block.Sum(c, [&](int64_t j) {
          return FromBf16(dy[at + j]) * gamma[j] * ((FromBf16(x[at + j]) - center) * scale);
        });
        block.ForEach(c, [&](int64_t j) {
          const float normal = (FromBf16(x[at + j]) - center) * scale;
          const float g = FromBf16(dy[at + j]) * gamma[j];
          const float own = scale * (g - (g_sum + normal * gx_sum) / static_cast<float>(c));
          const float past = residual == nullptr ? 0.0f : FromBf16(residual[at + j]);
          dx[at + j] = ToBf16(own + past);
        });
      });
}

void LayerNormWeightGradient(Queue& queue, const Bf16* dy, const Bf16* x, const float* mean,
                             const float* rstd, int64_t m, int64_t c, float* dgamma, float* dbeta) {
  ColumnSums(
      queue, "LayerNormWeightGradientBf16", m, c,
      [=] PIPELAB_DEVICE(int64_t i, int64_t j) {
        const float g = FromBf16(dy[i * c + j]);
        return Two{g * ((FromBf16(x[i * c + j]) - mean[i]) * rstd[i]), g};
      },
      [=] PIPELAB_DEVICE(int64_t j, double gamma, double beta) {
        dgamma[j] += static_cast<float>(gamma);
        dbeta[j] += static_cast<float>(beta);
      });
}

void AddColumnSums(Queue& queue, const Bf16* dy, int64_t m, int64_t n, float* db) {
  ColumnSums(
      queue, "AddColumnSumsBf16", m, n,
      [=] PIPELAB_DEVICE(int64_t i, int64_t j) {
        return Two{FromBf16(dy[i * n + j]), 0};
      },
      [=] PIPELAB_DEVICE(int64_t j, double sum, double) { db[j] += static_cast<float>(sum); });
}

void CausalSoftmax(Queue& queue, int64_t matrices, int64_t tokens, Bf16* scores) {
  ForEachBlock(queue, "CausalSoftmaxBf16", matrices * tokens, tokens,
               [=] PIPELAB_DEVICE(Block & block, int64_t row) {
                 Bf16* const at = scores + row * tokens;
                 const int64_t seen = row % tokens + 1;
                 float* const e = block.shared();
                 const float most = block.Max(seen, [&](int64_t j) { return FromBf16(at[j]); });
                 block.ForEach(seen, [&](int64_t j) { e[j] = expf(FromBf16(at[j]) - most); });
                 const float inverse = 1.0f / block.Sum(seen, [&](int64_t j) { return e[j]; });
                 block.ForEach(
                     tokens, [&](int64_t j) { at[j] = ToBf16(j < seen ? e[j] * inverse : 0.0f); });
               });
}

void CausalSoftmaxGradient(Queue& queue, const Bf16* p, int64_t matrices, int64_t tokens,
                           float scale, Bf16* dp) {
  ForEachBlock(queue, "CausalSoftmaxGradientBf16", matrices * tokens, 0,
               [=] PIPELAB_DEVICE(Block & block, int64_t row) {
                 const Bf16* const own_p = p + row * tokens;
                 Bf16* const own_dp = dp + row * tokens;
                 const int64_t seen = row % tokens + 1;
                 const float mean = block.Sum(
                     seen, [&](int64_t j) { return FromBf16(own_p[j]) * FromBf16(own_dp[j]); });
                 block.ForEach(tokens, [&](int64_t j) {
                   const float d = scale * FromBf16(own_p[j]) * (FromBf16(own_dp[j]) - mean);
                   own_dp[j] = ToBf16(j < seen ? d : 0.0f);
                 });
               });
}

}  // namespace bf16
}  // namespace gpu
}  // namespace pipelab
