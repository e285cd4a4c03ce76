// Every kernel of our own, on plain pointers into a device's memory. Checks of shapes and what each
// must compute are the Backend's (kernels/backend.h); what the libraries do is library.h's.
//
//   gpu::LayerNorm(queue, x, gamma, beta, m, c, y, mean, rstd);
//
// All are queued. Row-major. Gradients of weights are added to. Nothing adds atomically: the same
// call gives the same bits.
//
// T is the type of activations, float or BFloat16: one piece of code for both. Arithmetic is in
// float32 all the same, and each result is rounded once.
#ifndef PIPELAB_KERNELS_CUDA_FUNCTIONS_H_
#define PIPELAB_KERNELS_CUDA_FUNCTIONS_H_

#include <cstdint>

#include "kernels/cuda/queue.h"
#include "kernels/gate_kind.h"
#include "kernels/int4_layout.h"
#include "kernels/router_shape.h"
#include "kernels/tensor/bfloat16.h"

namespace pipelab {
namespace gpu {

// --- elementwise.cu.cc: results may be their inputs.
template <class T>
void Gelu(Queue& queue, GeluForm form, const T* x, int64_t n, T* y);
template <class T>
void GeluGradient(Queue& queue, GeluForm form, const T* dy, const T* x, int64_t n, T* dx);
// Rows of f gates and then f values.
template <class T>
void Gate(Queue& queue, GateKind kind, const T* gu, int64_t m, int64_t f, T* y);
template <class T>
void GateGradient(Queue& queue, GateKind kind, const T* dy, const T* gu, int64_t m, int64_t f,
                  T* dgu);
template <class T>
void Relu(Queue& queue, const T* x, int64_t n, T* y);
template <class T>
void ReluGradient(Queue& queue, const T* dy, const T* y, int64_t n, T* dx);
// The types are (T, T), and (float, BFloat16).
template <class T, class B>
void Add(Queue& queue, const T* a, const B* b, int64_t n, T* y);
template <class T>
void Fill(Queue& queue, float value, int64_t n, T* x);
template <class T>
void Scale(Queue& queue, float factor, int64_t n, T* x);
// From any type to any.
template <class From, class To>
void Convert(Queue& queue, const From* from, int64_t n, To* to);
// The types are (T, T), and (float, BFloat16).
template <class From, class To>
void CopyColumns(Queue& queue, const From* from, int64_t from_width, int64_t rows, int64_t columns,
                 To* to, int64_t to_width);
template <class T>
void AddBias(Queue& queue, const T* b, int64_t m, int64_t n, T* y);
// y = x, or a + x, with element i kept where Uniform(offset + i) >= rate (tools/base/rng.h).
struct DropoutNumbers {
  uint64_t seed, stream, offset;
  float rate;
};
template <class T>
void Dropout(Queue& queue, const T* a, const T* x, const DropoutNumbers& numbers, int64_t n,
             T* y);  // `a` may be null

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

// --- rows.cu.cc: of an RMS norm beta and mean are null
template <class T>
void LayerNorm(Queue& queue, const T* x, const T* gamma, const T* beta, int64_t m, int64_t c, T* y,
               float* mean, float* rstd);
// dx = gradient + residual, the gradient that goes past the norm; it may be null.
template <class T>
void LayerNormInputGradient(Queue& queue, const T* dy, const T* x, const T* gamma,
                            const float* mean, const float* rstd, const T* residual, int64_t m,
                            int64_t c, T* dx);
template <class T>
void LayerNormWeightGradient(Queue& queue, const T* dy, const T* x, const float* mean,
                             const float* rstd, int64_t m, int64_t c, float* dgamma, float* dbeta);
template <class T>
void AddColumnSums(Queue& queue, const T* dy, int64_t m, int64_t n, float* db);

// --- loss.cu.cc; results of forwards go to *result in the device's memory
template <class T>
void CrossEntropy(Queue& queue, const T* logits, const int32_t* targets, int64_t m, int64_t v,
                  double* result);
template <class T>
void CrossEntropyGradient(Queue& queue, const T* logits, const int32_t* targets, int64_t m,
                          int64_t v, float scale, T* dlogits);
template <class T>
void LargestLogits(Queue& queue, const T* logits, int64_t m, int64_t v, float* most);
template <class T>
void SoftmaxSums(Queue& queue, const T* logits, const int32_t* targets, int64_t first,
                 const float* most, int64_t m, int64_t v, float* sums, float* target_logits);
void CrossEntropyOfSums(Queue& queue, const int32_t* targets, const float* sums,
                        const float* target_logits, int64_t m, float* most, double* result);
template <class T>
void CrossEntropyPartGradient(Queue& queue, const T* logits, const int32_t* targets, int64_t first,
                              const float* lse, int64_t m, int64_t v, float scale, T* dlogits);
template <class T>
void SquaredError(Queue& queue, const T* y, const float* targets, int64_t n, double* result);
template <class T>
void SquaredErrorGradient(Queue& queue, const T* y, const float* targets, float scale, int64_t n,
                          T* dy);
template <class T>
void BinaryCrossEntropy(Queue& queue, const T* logits, const float* targets, int64_t n,
                        double* result);
template <class T>
void BinaryCrossEntropyGradient(Queue& queue, const T* logits, const float* targets, float scale,
                                int64_t n, T* dlogits);

// --- embedding.cu.cc
// y[i] = table[tokens[i] - first] + positions[i % period]. A token outside [first, first + rows)
// has zeros in the place of its row; with `strict` it is a fault of the caller, and its row of y
// becomes NaN.
template <class T>
void Lookup(Queue& queue, const int32_t* tokens, int64_t first, const T* table, int64_t rows,
            const T* positions, int64_t period, bool strict, int64_t m, int64_t c, T* y);
template <class T>
void PositionsGradient(Queue& queue, const T* dy, int64_t period, int64_t m, int64_t c,
                       float* dpositions);
// dtable[ids[e] - first] += factor dy[e / bag], in the order of entries; the factor is 1, or with
// `mean` one over the ids that the bag has. Ids outside the table count for nothing.
template <class T>
void RowsGradient(Queue& queue, const int32_t* ids, int64_t entries, int64_t bag, int64_t first,
                  bool mean, const T* dy, int64_t c, int64_t rows, float* dtable);
template <class T>
void Bag(Queue& queue, const int32_t* ids, int64_t bag, const T* table, int64_t rows, bool mean,
         int64_t m, int64_t c, T* y);

// --- graphs.cu.cc: kernels/graph_kernels.h
struct EdgePlaces {  // GraphIndex
  int64_t sources, targets;
  const int32_t *offsets, *edge_sources, *edge_targets, *back_offsets, *back_edges;
};
template <class T>
void GatherRows(Queue& queue, const int32_t* ids, const T* x, int64_t rows, int64_t m, int64_t c,
                T* y);  // NaNs for a number that is no row's
template <class T>
void DropRows(Queue& queue, const int32_t* ids, const DropoutNumbers& numbers, const T* x,
              int64_t m, int64_t c, T* y);
template <class T>
void Aggregate(Queue& queue, const EdgePlaces& edges, bool mean, bool self, int64_t c, const T* x,
               T* y);
template <class T>
void AggregateGradient(Queue& queue, const EdgePlaces& edges, bool mean, bool self, int64_t c,
                       const T* dy, T* dx);
void HeadProducts(Queue& queue, int64_t m, int64_t c, int64_t heads, const float* x, const float* w,
                  float* y);
void HeadProductsInputGradient(Queue& queue, int64_t m, int64_t c, int64_t heads, const float* dy,
                               const float* w, float* dx);
void HeadProductsWeightGradient(Queue& queue, int64_t m, int64_t c, int64_t heads, const float* x,
                                const float* dy, float* dw);
void EdgeSoftmax(Queue& queue, const EdgePlaces& edges, float slope, int64_t heads,
                 const float* source, const float* target, float* a);
void EdgeSoftmaxGradient(Queue& queue, const EdgePlaces& edges, float slope, int64_t heads,
                         const float* source, const float* target, const float* a, float* da,
                         float* dsource, float* dtarget);
void Weighed(Queue& queue, const EdgePlaces& edges, int64_t c, int64_t heads, const float* a,
             const float* x, float* y);
void WeighedGradient(Queue& queue, const EdgePlaces& edges, int64_t count, int64_t c, int64_t heads,
                     const float* a, const float* x, const float* dy, float* da, float* dx);

// --- experts.cu.cc: kernels/expert_kernels.h
template <class T>
void Route(Queue& queue, const RouterShape& shape, const T* logits, float* weights,
           int32_t* experts, int32_t* places, int32_t* begins);
template <class T>
void RouteGradient(Queue& queue, const RouterShape& shape, const float* dweights, const T* logits,
                   const int32_t* experts, float balance, T* dlogits);  // which may be logits
struct ExpertRows {
  const int32_t* places;
  int64_t tokens, choices, columns;
};
template <class T>
void GatherRows(Queue& queue, const ExpertRows& rows, const T* x, T* all);
template <class T>
void SumOfChoices(Queue& queue, const ExpertRows& rows, const T* all, T* y);
template <class T>
void Weigh(Queue& queue, const ExpertRows& rows, const float* weights, T* x);
template <class T>
void WeighGradient(Queue& queue, const ExpertRows& rows, const float* weights, const T* x, T* dy,
                   float* dweights);
// Plain loops, one number of the result a thread: no tensor cores.
struct ExpertProducts {
  const int32_t* begins;
  int64_t groups, rows, k, n;
};
template <class T>
void ExpertProduct(Queue& queue, const ExpertProducts& call, const T* x, const T* w, T* y);
template <class T>
void ExpertProductInputGradient(Queue& queue, const ExpertProducts& call, const T* dy, const T* w,
                                T* dx);
template <class T>
void ExpertProductWeightGradient(Queue& queue, const ExpertProducts& call, const T* x, const T* dy,
                                 float* dw);

// --- quantized.cu.cc: kernels/quantized_kernels.h. Plain loops: no tensor cores.
struct Int4Call {
  Int4Shape shape;
  int64_t m;
  const int32_t* codes;
  const BFloat16* scales;
  float book[16];  // FactorsOfBook
  float book_step;
};
template <class T>
void Int4Product(Queue& queue, const Int4Call& call, Int4Math math, const T* x, T* y);

// --- attention.cu.cc
// RotaryShape (kernels/attention_kernels.h) as kernels take it; rows of `columns`.
struct RotaryNumbers {
  int64_t rows, tokens, first_token, heads, head_size, columns;
  double log_base;
  float sign;  // -1: back
  int64_t head_stride;
};
template <class T>
void Rotate(Queue& queue, const RotaryNumbers& numbers, T* x);
// Rows of x, of `size` numbers, and `heads` times as many of y, of `columns`.
template <class T>
void ShareHead(Queue& queue, const T* x, int64_t rows, int64_t size, int64_t heads, int64_t columns,
               T* y);
template <class T>
void ShareHeadGradient(Queue& queue, const T* dy, int64_t rows, int64_t size, int64_t heads,
                       int64_t columns, T* dx);
// AttentionCall (kernels/attention_call.h) as kernels take it.
struct AttentionNumbers {
  int64_t samples, heads, group, size, value_size, queries, keys;
  bool causal;
  int64_t first_query, window;
  bool writes_all_keys, adds_queries;
  const int32_t* key_lengths;  // [samples], in the device's memory; null: all
  int64_t q_offset, q_row, q_sample;
  int64_t k_offset, v_offset, kv_row, kv_sample, kv_head;
};
// Heads wider than this need more shared memory than a GPU has.
inline constexpr int64_t kMostHeadSize = 4096;
template <class T>
void Attention(Queue& queue, const AttentionNumbers& call, const T* q, const T* kv, T* out,
               float* lse);
template <class T>
void AttentionGradient(Queue& queue, const AttentionNumbers& call, const T* dout, const T* q,
                       const T* kv, const T* out, const float* lse, T* dq, T* dkv);
// N of M queries of so many heads, each with `size` values.
template <class T>
void MergeAttention(Queue& queue, int64_t n, int64_t m, int64_t heads, int64_t size,
                    const T* part_NC, const float* part_lse_HN, T* out_MC, float* lse_HM);

// --- causal_softmax.cu.cc: between batched products, which have tensor cores (bf16_block.h).
// Scores [matrices, tokens, tokens], in place: row i sees its first i + 1 columns, the rest is 0.
void CausalSoftmax(Queue& queue, int64_t matrices, int64_t tokens, BFloat16* scores);
// dp in place: scale p (dp - sum(p dp)).
void CausalSoftmaxGradient(Queue& queue, const BFloat16* p, int64_t matrices, int64_t tokens,
                           float scale, BFloat16* dp);

// --- images.cu.cc: sizes as in pooling_kernels.h and convolution_kernels.h
struct Window {
  int64_t samples, height, width, out_height, out_width;
  int64_t kernel_height, kernel_width, stride_height, stride_width, pad_height, pad_width;
};
template <class T>
void MaxPool(Queue& queue, const Window& window, int64_t channels, const T* x, T* y);
template <class T>
void MaxPoolGradient(Queue& queue, const Window& window, int64_t channels, const T* dy, const T* x,
                     T* dx);
template <class T>
void AveragePool(Queue& queue, const Window& window, int64_t channels, bool count_padding,
                 const T* x, T* y);
template <class T>
void AveragePoolGradient(Queue& queue, const Window& window, int64_t channels, bool count_padding,
                         const T* dy, T* dx);
struct Channels {
  int64_t in, out;
  bool depthwise;
};
// Plain loops: depthwise convolutions, and what the library refuses.
template <class T>
void Convolution(Queue& queue, const Window& window, const Channels& channels, const T* x,
                 const T* w, const T* b, T* y);  // `b` may be null
template <class T>
void ConvolutionInputGradient(Queue& queue, const Window& window, const Channels& channels,
                              const T* dy, const T* w, T* dx);
template <class T>
void ConvolutionWeightGradient(Queue& queue, const Window& window, const Channels& channels,
                               const T* x, const T* dy, float* dw);
// Weights [taps, in, out] to the library's [out, taps, in], and back, added.
template <class T>
void WeightsToLibrary(Queue& queue, const T* w, int64_t taps, int64_t in, int64_t out, T* to);
template <class T>
void AddWeightsOfLibrary(Queue& queue, const T* from, int64_t taps, int64_t in, int64_t out,
                         float* w);

// --- batch_norm.cu.cc
template <class T>
void BatchNormStatistics(Queue& queue, const T* x, int64_t m, int64_t c, float* mean,
                         float* variance);
template <class T>
void BatchNormInference(Queue& queue, const T* x, const T* gamma, const T* beta, const float* mean,
                        const float* variance, int64_t m, int64_t c, T* y);
template <class T>
void BatchNormGradientSums(Queue& queue, const T* dy, const T* x, const float* mean,
                           const float* variance, int64_t m, int64_t c, float* dgamma_part,
                           float* dbeta_part);
// The sums are over `all` rows, of which these m are some.
template <class T>
void BatchNormInputGradient(Queue& queue, const T* dy, const T* x, const T* gamma,
                            const float* mean, const float* variance, const float* dgamma,
                            const float* dbeta, int64_t all, int64_t m, int64_t c, T* dx);
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
