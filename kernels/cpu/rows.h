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

// One tile of attention scores, m rows of c in place. Row i sees its first causal_from + i + 1
// columns, of these the last `window` (0: all), and the rest becomes 0; a tile may be past what a
// row sees, in front of it or behind.
//
// Forward: most[i] and sum[i] are the largest score of the row so far, -infinity at first, and the
// sum of e^(score - most); they take in the tile, whose scores become e^(score - most). fade[i] is
// what sums of earlier tiles are multiplied by.
void SoftmaxTile(float* scores, int64_t m, int64_t c, int64_t causal_from, int64_t window,
                 float* most, float* sum, float* fade);
// lse becomes the log of the row's sum, sum its inverse.
void FinishSoftmax(int64_t m, const float* most, float* sum, float* lse);
// Backward: scores become p = e^(score - lse); dp becomes p (dp - dout . out) for rows of `size` in
// dout and out, `stride` apart.
void SoftmaxTileBackward(float* scores, float* dp, int64_t m, int64_t c, int64_t causal_from,
                         int64_t window, const float* lse, const float* dout, const float* out,
                         int64_t size, int64_t stride);
// Multiplies each of m rows of c, `stride` apart, by its factor.
void ScaleRows(const float* factor, int64_t m, int64_t c, int64_t stride, float* y);

double CrossEntropyForward(const float* logits, const int32_t* targets, int64_t m, int64_t v);
void CrossEntropyBackward(const float* logits, const int32_t* targets, int64_t m, int64_t v,
                          float scale, float* dlogits);  // dlogits may be logits

// These are of columns [first, first + v) of wider rows (kernels/loss_kernels.h).
void LargestOfRows(const float* logits, int64_t m, int64_t v, float* most);
void SoftmaxSumsForward(const float* logits, const int32_t* targets, int64_t first,
                        const float* most, int64_t m, int64_t v, float* sums, float* target_logits);
void CrossEntropyPartBackward(const float* logits, const int32_t* targets, int64_t first,
                              const float* lse, int64_t m, int64_t v, float scale, float* dlogits);

}  // namespace cpu
}  // namespace pipelab

#endif  // PIPELAB_KERNELS_CPU_ROWS_H_
