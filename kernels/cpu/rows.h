// Kernels that reduce over rows: layer norm, softmax, cross-entropy. A row is read from memory once
// and from the first-level cache after that.
//
//   LayerNormForward(x, gamma, beta, m, c, y, mean, rstd);
//
// Row-major; m rows of c columns; `stride` is the distance of two rows in floats where it may
// differ.
#ifndef PIPELAB_KERNELS_CPU_ROWS_H_
#define PIPELAB_KERNELS_CPU_ROWS_H_

#include <cstdint>

namespace pipelab {
namespace cpu {

void LayerNormForward(const float* x, const float* gamma, const float* beta, int64_t m, int64_t c,
                      float* y, float* mean, float* rstd);
void LayerNormBackward(const float* dy, const float* x, const float* gamma, const float* mean,
                       const float* rstd, int64_t m, int64_t c, float* dx);
void LayerNormWeights(const float* dy, const float* x, const float* mean, const float* rstd,
                      int64_t m, int64_t c, float* dgamma, float* dbeta);
// The same without means and beta.
void RmsNormForward(const float* x, const float* gamma, int64_t m, int64_t c, float* y,
                    float* rstd);
void RmsNormBackward(const float* dy, const float* x, const float* gamma, const float* rstd,
                     int64_t m, int64_t c, float* dx);
void RmsNormWeights(const float* dy, const float* x, const float* rstd, int64_t m, int64_t c,
                    float* dgamma);

// One block of attention scores, m rows of c in place. With causal_from >= 0, row i sees its first
// causal_from + i + 1 columns, of these the last `window` (0: all), and the rest becomes 0; with -1
// it sees all.
//
// Forward: scores become e^(score - max); inverse_sum[i] normalises the row, lse[i] = log of the
// row's sum.
void SoftmaxBlock(float* scores, int64_t m, int64_t c, int64_t causal_from, int64_t window,
                  float* inverse_sum, float* lse);
// Backward: scores become p = e^(score - lse); dp becomes p (dp - dout . out) for rows of `size` in
// dout and out, `stride` apart.
void SoftmaxBlockBackward(float* scores, float* dp, int64_t m, int64_t c, int64_t causal_from,
                          int64_t window, const float* lse, const float* dout, const float* out,
                          int64_t size, int64_t stride);
// Multiplies each of m rows of c, `stride` apart, by its factor.
void ScaleRows(const float* factor, int64_t m, int64_t c, int64_t stride, float* y);

double CrossEntropyForward(const float* logits, const int32_t* targets, int64_t m, int64_t v);
void CrossEntropyBackward(const float* logits, const int32_t* targets, int64_t m, int64_t v,
                          float scale, float* dlogits);  // dlogits may be logits

// Of columns [first, first + v) of wider rows (kernels/loss_kernels.h).
void LargestOfRows(const float* logits, int64_t m, int64_t v, float* most);
void SoftmaxSumsForward(const float* logits, const int32_t* targets, int64_t first,
                        const float* most, int64_t m, int64_t v, float* sums, float* target_logits);
void CrossEntropyPartBackward(const float* logits, const int32_t* targets, int64_t first,
                              const float* lse, int64_t m, int64_t v, float scale, float* dlogits);

}  // namespace cpu
}  // namespace pipelab

#endif  // PIPELAB_KERNELS_CPU_ROWS_H_
