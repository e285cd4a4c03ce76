// What every kernel must compute, as plain loops in double: the definition that backends are tested
// against, and that finite differences are taken of.
//
//   std::vector<double> y(m * n);
//   reference::Linear({m, k, n}, x_MK, w_KN, b_N, absl::MakeSpan(y));
//
// Row-major spans whose sizes the caller has checked. Weight gradients (dw, db, dgamma, dbeta,
// dtable, dpositions) are added to; everything else is overwritten. Nothing here is fast, on
// purpose.
#ifndef PIPELAB_KERNELS_REFERENCE_FUNCTIONS_H_
#define PIPELAB_KERNELS_REFERENCE_FUNCTIONS_H_

#include <cstdint>

#include "absl/types/span.h"
#include "kernels/attention_call.h"
#include "kernels/backend.h"
#include "kernels/shape_checks.h"

namespace pipelab {
namespace reference {

using In = absl::Span<const double>;
using Out = absl::Span<double>;
using Indices = absl::Span<const int32_t>;

inline constexpr double kLayerNormEpsilon = 1e-5;

// linear.cc
void Linear(const MatmulSize& size, In x_MK, In w_KN, In b_N, Out y_MN);  // b_N may be empty
void LinearInputGradient(const MatmulSize& size, In dy_MN, In w_KN, Out dx_MK);
void LinearWeightGradient(const MatmulSize& size, In x_MK, In dy_MN, Out dw_KN, Out db_N);
void LinearTransposed(const MatmulSize& size, In x_MK, In w_NK, Out y_MN);
void LinearTransposedInputGradient(const MatmulSize& size, In dy_MN, In w_NK, Out dx_MK);
void LinearTransposedWeightGradient(const MatmulSize& size, In x_MK, In dy_MN, Out dw_NK);

// layer_norm.cc
void LayerNorm(const RowsSize& size, In x_MC, In gamma_C, In beta_C, Out y_MC, Out mean_M,
               Out rstd_M);
void LayerNormInputGradient(const RowsSize& size, In dy_MC, In x_MC, In gamma_C, In mean_M,
                            In rstd_M, Out dx_MC);
void LayerNormWeightGradient(const RowsSize& size, In dy_MC, In x_MC, In mean_M, In rstd_M,
                             Out dgamma_C, Out dbeta_C);

// attention.cc: q and kv may be one tensor, and so may their gradients
void Attention(const AttentionCall& call, In q, In kv, Out out_MC, Out lse_SHQ);
void Rotate(const RotaryShape& shape, bool back, int64_t columns, Out x_MC);
// Rows of x, of `size` numbers; of y, of `columns`.
void ShareHead(int64_t rows, int64_t size, int64_t heads, int64_t columns, In x_MD, Out y);
void ShareHeadGradient(int64_t rows, int64_t size, int64_t heads, int64_t columns, In dy,
                       Out dx_MD);
// N of M queries of so many heads.
void Merge(int64_t n, int64_t m, int64_t heads, In part_NC, In part_lse_HN, Out out_MC, Out lse_HM);
void AttentionGradient(const AttentionCall& call, In dout_MC, In q, In kv, In out_MC, In lse_SHQ,
                       Out dq, Out dkv);

// elementwise.cc
void Gelu(GeluForm form, In x, Out y);
void GeluGradient(GeluForm form, In dy, In x, Out dx);
// `size` is that of y.
void Gate(GateKind kind, const RowsSize& size, In gu_M2F, Out y_MF);
void GateGradient(GateKind kind, const RowsSize& size, In dy_MF, In gu_M2F, Out dgu_M2F);
void Relu(In x, Out y);
void ReluGradient(In dy, In y, Out dx);
void Dropout(In x, const DropoutMask& mask, Out y);

// optimizer.cc: one step; a velocity may be empty
void Adam(const AdamOptions& options, In dw, Out w, Out m, Out v);
void Sgd(const SgdOptions& options, In dw, Out w, Out velocity);
void RmsProp(const RmsPropOptions& options, In dw, Out w, Out squares, Out velocity);
double SumOfSquares(In x);

// embedding.cc
void Embedding(const RowsSize& size, Indices tokens_M, In table_VC, In positions_TC, Out y_MC);
void EmbeddingWeightGradient(const RowsSize& size, Indices tokens_M, In dy_MC, Out dtable_VC,
                             Out dpositions_TC);
// `positions` and their gradient may be empty.
void EmbeddingPart(const RowsSize& size, Indices tokens_M, int64_t first, In table_VC,
                   In positions_TC, Out y_MC);
void EmbeddingPartWeightGradient(const RowsSize& size, Indices tokens_M, int64_t first, In dy_MC,
                                 Out dtable_VC, Out dpositions_TC);
void EmbeddingBag(const RowsSize& size, Indices ids_MB, In table_VC, BagMode mode, Out y_MC);
void EmbeddingBagWeightGradient(const RowsSize& size, Indices ids_MB, In dy_MC, BagMode mode,
                                Out dtable_VC);

// experts.cc
struct Places {  // Routing (kernels/expert_kernels.h)
  absl::Span<int32_t> experts_MK, places_MK, begins_G1;
};
void Route(const RouterShape& shape, In logits_ME, Out weights_MK, const Places& places);
void RouteGradient(const RouterShape& shape, In dweights_MK, In logits_ME, Indices experts_MK,
                   double balance, Out dlogits_ME);
// What RouteGradient is the gradient of besides the weights.
double BalancingLoss(const RouterShape& shape, In logits_ME, Indices experts_MK);
// Rows have `choices` each, and are `columns` wide.
void Gather(Indices places_MK, int64_t choices, int64_t columns, In x_MC, Out all_RC);
void SumOfChoices(Indices places_MK, int64_t choices, int64_t columns, In all_RC, Out y_MC);
void Weigh(Indices places_MK, int64_t columns, In weights_MK, Out x_RF);
void WeighGradient(Indices places_MK, int64_t columns, In weights_MK, In x_RF, Out dy_RF,
                   Out dweights_MK);
// `size` without rows: those are the begins'.
void ExpertProduct(Indices begins_G1, const MatmulSize& size, In x_RK, In w_GKN, Out y_RN);
void ExpertProductInputGradient(Indices begins_G1, const MatmulSize& size, In dy_RN, In w_GKN,
                                Out dx_RK);
void ExpertProductWeightGradient(Indices begins_G1, const MatmulSize& size, In x_RK, In dy_RN,
                                 Out dw_GKN);

// graphs.cc: edges by target, from sources_E[e] for e in [offsets[t], offsets[t + 1])
struct GraphEdges {
  Indices offsets_T1, sources_E;
};
// Rows of C numbers; of H heads.
void DropRows(Indices ids_M, const DropoutMask& mask, int64_t c, In x_MC, Out y_MC);
void Aggregate(const GraphEdges& edges, AggregateMode mode, int64_t c, In x_SC, Out y_TC);
void AggregateGradient(const GraphEdges& edges, AggregateMode mode, int64_t c, In dy_TC, Out dx_SC);
void HeadProducts(int64_t c, int64_t heads, In x_MC, In w_C, Out y_MH);
void HeadProductsInputGradient(int64_t c, int64_t heads, In dy_MH, In w_C, Out dx_MC);
void HeadProductsWeightGradient(int64_t c, int64_t heads, In x_MC, In dy_MH, Out dw_C);
void EdgeSoftmax(const GraphEdges& edges, double slope, int64_t heads, In source_SH, In target_TH,
                 Out a_EH);
void EdgeSoftmaxGradient(const GraphEdges& edges, double slope, int64_t heads, In source_SH,
                         In target_TH, In a_EH, Out da_EH, Out dsource_SH, Out dtarget_TH);
void Weighed(const GraphEdges& edges, int64_t c, int64_t heads, In a_EH, In x_SC, Out y_TC);
void WeighedGradient(const GraphEdges& edges, int64_t c, int64_t heads, In a_EH, In x_SC, In dy_TC,
                     Out da_EH, Out dx_SC);

// convolution.cc
void Convolution(const ConvolutionShape& shape, In x_NHWC, In w_HWIO, In b_O, Out y_NHWC);
void ConvolutionInputGradient(const ConvolutionShape& shape, In dy_NHWC, In w_HWIO, Out dx_NHWC);
void ConvolutionWeightGradient(const ConvolutionShape& shape, In x_NHWC, In dy_NHWC, Out dw_HWIO,
                               Out db_O);

// pooling.cc
void MaxPool(const PoolingShape& shape, In x_NHWC, Out y_NHWC);
void MaxPoolGradient(const PoolingShape& shape, In dy_NHWC, In x_NHWC, Out dx_NHWC);
void AveragePool(const PoolingShape& shape, In x_NHWC, Out y_NHWC);
void AveragePoolGradient(const PoolingShape& shape, In dy_NHWC, Out dx_NHWC);

// batch_norm.cc
void BatchNorm(const RowsSize& size, In x_MC, In gamma_C, In beta_C, Out y_MC, Out mean_C,
               Out variance_C);
void BatchNormInference(const RowsSize& size, In x_MC, In gamma_C, In beta_C, In mean_C,
                        In variance_C, Out y_MC);
void BatchNormInputGradient(const RowsSize& size, In dy_MC, In x_MC, In gamma_C, In mean_C,
                            In variance_C, Out dx_MC, Out dgamma_part_C, Out dbeta_part_C);
// The same in parts; `rows`: over how many the sums are.
void BatchNormStatistics(const RowsSize& size, In x_MC, Out mean_C, Out variance_C);
void BatchNormGradientSums(const RowsSize& size, In dy_MC, In x_MC, In mean_C, In variance_C,
                           Out dgamma_part_C, Out dbeta_part_C);
void BatchNormInputGradientOfSums(const RowsSize& size, In dy_MC, In x_MC, In gamma_C, In mean_C,
                                  In variance_C, In dgamma_C, In dbeta_C, int64_t rows, Out dx_MC);
void BatchNormUpdateRunning(int64_t micro_batches, In statistics_B2C,
                            absl::Span<const int64_t> rows_B, double momentum, Out running_mean_C,
                            Out running_variance_C);

// loss.cc
double CrossEntropy(const RowsSize& size, In logits_MV, Indices targets_M);
void CrossEntropyGradient(const RowsSize& size, In logits_MV, Indices targets_M, double scale,
                          Out dlogits_MV);
void LargestLogits(const RowsSize& size, In logits_MV, Out most_M);
void SoftmaxSums(const RowsSize& size, In logits_MV, Indices targets_M, int64_t first, In most_M,
                 Out sums_M, Out target_logits_M);
double CrossEntropyOfSums(Indices targets_M, In sums_M, In target_logits_M, Out most_M);
void CrossEntropyPartGradient(const RowsSize& size, In logits_MV, Indices targets_M, int64_t first,
                              In lse_M, double scale, Out dlogits_MV);
double SquaredError(In y, In targets);
void SquaredErrorGradient(In y, In targets, double scale, Out dy);
double BinaryCrossEntropy(In logits, In targets);
void BinaryCrossEntropyGradient(In logits, In targets, double scale, Out dlogits);

}  // namespace reference
}  // namespace pipelab

#endif  // PIPELAB_KERNELS_REFERENCE_FUNCTIONS_H_
