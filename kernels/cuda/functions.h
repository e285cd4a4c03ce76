// Every kernel of our own, on plain pointers into a device's memory. Checks of shapes and what each
// must compute are the Backend's (kernels/backend.h); what the libraries do is library.h's.
//
//   gpu::LayerNorm(queue, x, gamma, beta, m, c, y, mean, rstd);
//
// All are queued. Row-major float32. Gradients of weights are added to. Nothing adds atomically:
// the same call gives the same bits.
#ifndef PIPELAB_KERNELS_CUDA_FUNCTIONS_H_
#define PIPELAB_KERNELS_CUDA_FUNCTIONS_H_

#include <cstdint>

#include "kernels/cuda/queue.h"

namespace pipelab {
namespace gpu {

// --- elementwise.cu.cc: results may be their inputs.
void Gelu(Queue& queue, const float* x, int64_t n, float* y);
void GeluGradient(Queue& queue, const float* dy, const float* x, int64_t n, float* dx);
void Relu(Queue& queue, const float* x, int64_t n, float* y);
void ReluGradient(Queue& queue, const float* dy, const float* y, int64_t n, float* dx);
void Add(Queue& queue, const float* a, const float* b, int64_t n, float* y);
void Fill(Queue& queue, float value, int64_t n, float* x);
void Scale(Queue& queue, float factor, int64_t n, float* x);
void CopyColumns(Queue& queue, const float* from, int64_t from_width, int64_t rows, int64_t columns,
                 float* to, int64_t to_width);
void AddBias(Queue& queue, const float* b, int64_t m, int64_t n, float* y);
// y = x, or a + x, with element i kept where Uniform(offset + i) >= rate (tools/base/rng.h).
struct DropoutNumbers {
  uint64_t seed, stream, offset;
  float rate;
};
void Dropout(Queue& queue, const float* a, const float* x, const DropoutNumbers& numbers, int64_t n,
             float* y);  // `a` may be null

// --- optimizer.cu.cc
struct AdamNumbers {
  float beta1, beta2, rate, root_scale, epsilon, decay;
};
void Adam(Queue& queue, const AdamNumbers& numbers, const float* dw, int64_t n, float* w, float* m,
          float* v);
struct SgdNumbers {
  float rate, momentum, decay;
  bool nesterov;
};
void Sgd(Queue& queue, const SgdNumbers& numbers, const float* dw, int64_t n, float* w,
         float* velocity);  // which may be null
struct RmsPropNumbers {
  float rate, decay, momentum, weight_decay, inside, outside;  // sqrt(s + inside) + outside
};
void RmsProp(Queue& queue, const RmsPropNumbers& numbers, const float* dw, int64_t n, float* w,
             float* squares, float* velocity);
// *result, in the device's memory.
void SumOfSquares(Queue& queue, const float* x, int64_t n, double* result);

// --- rows.cu.cc
void LayerNorm(Queue& queue, const float* x, const float* gamma, const float* beta, int64_t m,
               int64_t c, float* y, float* mean, float* rstd);
void LayerNormInputGradient(Queue& queue, const float* dy, const float* x, const float* gamma,
                            const float* mean, const float* rstd, int64_t m, int64_t c, float* dx);
void LayerNormWeightGradient(Queue& queue, const float* dy, const float* x, const float* mean,
                             const float* rstd, int64_t m, int64_t c, float* dgamma, float* dbeta);
void AddColumnSums(Queue& queue, const float* dy, int64_t m, int64_t n, float* db);

// --- loss.cu.cc; results of forwards go to *result in the device's memory
void CrossEntropy(Queue& queue, const float* logits, const int32_t* targets, int64_t m, int64_t v,
                  double* result);
void CrossEntropyGradient(Queue& queue, const float* logits, const int32_t* targets, int64_t m,
                          int64_t v, float scale, float* dlogits);
void LargestLogits(Queue& queue, const float* logits, int64_t m, int64_t v, float* most);
void SoftmaxSums(Queue& queue, const float* logits, const int32_t* targets, int64_t first,
                 const float* most, int64_t m, int64_t v, float* sums, float* target_logits);
void CrossEntropyOfSums(Queue& queue, const int32_t* targets, const float* sums,
                        const float* target_logits, int64_t m, float* most, double* result);
void CrossEntropyPartGradient(Queue& queue, const float* logits, const int32_t* targets,
                              int64_t first, const float* lse, int64_t m, int64_t v, float scale,
                              float* dlogits);
void SquaredError(Queue& queue, const float* y, const float* targets, int64_t n, double* result);
void SquaredErrorGradient(Queue& queue, const float* y, const float* targets, float scale,
                          int64_t n, float* dy);
void BinaryCrossEntropy(Queue& queue, const float* logits, const float* targets, int64_t n,
                        double* result);
void BinaryCrossEntropyGradient(Queue& queue, const float* logits, const float* targets,
                                float scale, int64_t n, float* dlogits);

// --- embedding.cu.cc
// y[i] = table[tokens[i] - first] + positions[i % period]. A token outside [first, first + rows)
// has zeros in the place of its row; with `strict` it is a fault of the caller, and its row of y
// becomes NaN.
void Lookup(Queue& queue, const int32_t* tokens, int64_t first, const float* table, int64_t rows,
            const float* positions, int64_t period, bool strict, int64_t m, int64_t c, float* y);
void PositionsGradient(Queue& queue, const float* dy, int64_t period, int64_t m, int64_t c,
                       float* dpositions);
// dtable[ids[e] - first] += factor dy[e / bag], in the order of entries; the factor is 1, or with
// `mean` one over the ids that the bag has. Ids outside the table count for nothing.
void RowsGradient(Queue& queue, const int32_t* ids, int64_t entries, int64_t bag, int64_t first,
                  bool mean, const float* dy, int64_t c, int64_t rows, float* dtable);
void Bag(Queue& queue, const int32_t* ids, int64_t bag, const float* table, int64_t rows, bool mean,
         int64_t m, int64_t c, float* y);

// --- attention.cu.cc
// AttentionCall (kernels/attention_call.h) as kernels take it.
struct AttentionNumbers {
  int64_t samples, heads, size, queries, keys;
  bool causal;
  int64_t first_query;
  bool writes_all_keys;
  const int32_t* key_lengths;  // [samples], in the device's memory; null: all
  int64_t q_offset, q_row, q_sample;
  int64_t k_offset, v_offset, kv_row, kv_sample;
};
// Heads wider than this need more shared memory than a GPU has.
inline constexpr int64_t kMostHeadSize = 4096;
void Attention(Queue& queue, const AttentionNumbers& call, const float* q, const float* kv,
               float* out, float* lse);
void AttentionGradient(Queue& queue, const AttentionNumbers& call, const float* dout,
                       const float* q, const float* kv, const float* out, const float* lse,
                       float* dq, float* dkv);

// --- images.cu.cc: sizes as in pooling_kernels.h and convolution_kernels.h
struct Window {
  int64_t samples, height, width, out_height, out_width;
  int64_t kernel_height, kernel_width, stride_height, stride_width, pad_height, pad_width;
};
void MaxPool(Queue& queue, const Window& window, int64_t channels, const float* x, float* y);
void MaxPoolGradient(Queue& queue, const Window& window, int64_t channels, const float* dy,
                     const float* x, float* dx);
void AveragePool(Queue& queue, const Window& window, int64_t channels, bool count_padding,
                 const float* x, float* y);
void AveragePoolGradient(Queue& queue, const Window& window, int64_t channels, bool count_padding,
                         const float* dy, float* dx);
struct Channels {
  int64_t in, out;
  bool depthwise;
};
// Plain loops: depthwise convolutions, and what the library refuses.
void Convolution(Queue& queue, const Window& window, const Channels& channels, const float* x,
                 const float* w, const float* b, float* y);  // `b` may be null
void ConvolutionInputGradient(Queue& queue, const Window& window, const Channels& channels,
                              const float* dy, const float* w, float* dx);
void ConvolutionWeightGradient(Queue& queue, const Window& window, const Channels& channels,
                               const float* x, const float* dy, float* dw);
// Weights [taps, in, out] to the library's [out, taps, in], and back, added.
void WeightsToLibrary(Queue& queue, const float* w, int64_t taps, int64_t in, int64_t out,
                      float* to);
void AddWeightsOfLibrary(Queue& queue, const float* from, int64_t taps, int64_t in, int64_t out,
                         float* w);

// --- batch_norm.cu.cc
void BatchNorm(Queue& queue, const float* x, const float* gamma, const float* beta, int64_t m,
               int64_t c, float* y, float* mean, float* variance);
void BatchNormInference(Queue& queue, const float* x, const float* gamma, const float* beta,
                        const float* mean, const float* variance, int64_t m, int64_t c, float* y);
void BatchNormInputGradient(Queue& queue, const float* dy, const float* x, const float* gamma,
                            const float* mean, const float* variance, int64_t m, int64_t c,
                            float* dx, float* dgamma_part, float* dbeta_part);
// `rows` is [batches], in the device's memory; null: equally many.
void BatchNormUpdateRunning(Queue& queue, const float* statistics, const float* rows,
                            int64_t batches, int64_t c, float momentum, float* running_mean,
                            float* running_variance);

// --- reduce.cu.cc: kernels/comm/sum.h on a device
enum class Element : uint8_t { kFloat32, kInt32, kBFloat16 };
inline constexpr int kMostCopies = 64;
struct Copies {
  const void* in[kMostCopies];
  void* out[kMostCopies];
  int inputs, outputs;
};
void SumOfCopies(Queue& queue, const Copies& copies, Element element, int64_t begin, int64_t count);
void LargestOfCopies(Queue& queue, const Copies& copies, Element element, int64_t begin,
                     int64_t count);

}  // namespace gpu
}  // namespace pipelab

#endif  // PIPELAB_KERNELS_CUDA_FUNCTIONS_H_
