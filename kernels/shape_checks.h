// Sizes of the tensors of one call, and the checks that every kernel makes of them before its
// backend runs. A shape that does not fit is a broken invariant: each function CHECKs and names the
// kernel and both shapes.
//
//   CheckMatmul("Linear", x_MK, w_KN, y_MN, b_N);          // in the kernel's front (backend.h)
//   const auto [m, k, n] = MatmulOf(x_MK, y_MN);           // in a backend
//
// Leading dimensions collapse: a tensor counts as rows of its last dimension.
#ifndef PIPELAB_KERNELS_SHAPE_CHECKS_H_
#define PIPELAB_KERNELS_SHAPE_CHECKS_H_

#include <cstdint>
#include <initializer_list>
#include <limits>

#include "absl/types/span.h"
#include "kernels/tensor/tensor.h"

namespace pipelab {

struct AttentionShape;
struct ConvolutionShape;
struct CrossAttentionShape;
struct RotaryShape;
struct PoolingShape;

struct MatmulSize {
  int64_t m = 0, k = 0, n = 0;
};
struct RowsSize {
  int64_t rows = 0, columns = 0;
};

RowsSize RowsOf(const Tensor& x);
// The sizes of y = x w, and of the gradients of x and y.
MatmulSize MatmulOf(const Tensor& x_MK, const Tensor& y_MN);

// x_MK w_KN = y_MN; b_N may be empty. The gradients have the same shapes in the same places.
void CheckMatmul(const char* kernel, const Tensor& x_MK, const Tensor& w_KN, const Tensor& y_MN,
                 const Tensor& b_N);
// The same with the weight stored as [N, K].
void CheckMatmulTransposed(const char* kernel, const Tensor& x_MK, const Tensor& w_NK,
                           const Tensor& y_MN);

// All of `full_MC` have one size, all of `per_column_C` C elements, all of `per_row_M` M elements.
RowsSize CheckRows(const char* kernel, std::initializer_list<const Tensor*> full_MC,
                   std::initializer_list<const Tensor*> per_column_C,
                   std::initializer_list<const Tensor*> per_row_M);

// A norm that centers rows has both, one that does not has neither.
void CheckCentering(const char* kernel, const RowsSize& size, const Tensor& beta_C,
                    const Tensor& mean_M);
// gu_M2F has twice the columns of y_MF.
void CheckGate(const char* kernel, const Tensor& gu_M2F, const Tensor& y_MF);

// qkv and its gradient are [M, 3C], out and its gradient [queries, C], lse queries * heads.
void CheckAttention(const char* kernel, const AttentionShape& shape,
                    std::initializer_list<const Tensor*> qkv_M3C,
                    std::initializer_list<const Tensor*> out_MC, const Tensor& lse_SHQ);
void CheckSharedHead(const char* kernel, const Tensor& x_MD, const Tensor& y);
void CheckMerge(const char* kernel, const Tensor& part_NC, const Tensor& part_lse_HN,
                const Tensor& out_MC, const Tensor& lse_HM);
void CheckRotary(const char* kernel, const RotaryShape& shape, const Tensor& x_MC);
// q and its gradient are [queries, row()], out and its gradient [queries, C], kv and its gradient
// [keys, 2 kv_width()].
void CheckCrossAttention(const char* kernel, const CrossAttentionShape& shape,
                         std::initializer_list<const Tensor*> q_MC,
                         std::initializer_list<const Tensor*> out_MC,
                         std::initializer_list<const Tensor*> kv_N2C, const Tensor& lse_SHQ);

// Equal numbers of elements, which it returns.
int64_t CheckSameSize(const char* kernel, std::initializer_list<const Tensor*> tensors);

// Indices within [0, bound) or equal to `none`, M of them. A device's are not read: its kernels
// make a fault visible as NaNs.
void CheckIndices(const char* kernel, const Tensor& indices_M, int64_t count, int64_t bound,
                  int32_t none = std::numeric_limits<int32_t>::min());

// Rows of y, each as wide as the table's and the positions'; whole sequences of as many rows as
// positions.
RowsSize CheckEmbedding(const char* kernel, const Tensor& table_VC, const Tensor& positions_TC,
                        const Tensor& y_MC);
// The same of a part of the table; positions may be empty.
void CheckEmbeddingPart(const char* kernel, const Tensor& tokens_M, const Tensor& table_VC,
                        const Tensor& positions_TC, const Tensor& y_MC);

// As many elements as w, or empty where there is no momentum.
void CheckVelocity(const char* kernel, const Tensor& w, float momentum, const Tensor& velocity);

// Image geometries that leave at least one output pixel, and tensors of their sizes. The gradients
// have the same shapes in the same places.
void CheckConvolution(const char* kernel, const ConvolutionShape& shape, const Tensor& x_NHWC,
                      const Tensor& w_HWIO, const Tensor& b_O, const Tensor& y_NHWC);
void CheckPooling(const char* kernel, const PoolingShape& shape,
                  std::initializer_list<const Tensor*> in_NHWC,
                  std::initializer_list<const Tensor*> out_NHWC);

// As CheckRows, with at least one row: nothing has no statistics.
void CheckBatchNorm(const char* kernel, std::initializer_list<const Tensor*> full_MC,
                    std::initializer_list<const Tensor*> per_column_C);
void CheckRunningStatistics(const Tensor& statistics_B2C, absl::Span<const int64_t> rows_B,
                            const Tensor& running_mean_C, const Tensor& running_variance_C);

// Bags of equal size, ids of the table or kNoId.
void CheckEmbeddingBag(const char* kernel, const Tensor& ids_MB, const Tensor& table_VC,
                       const Tensor& y_MC);

void CheckCopyColumns(const Tensor& from_MC, int64_t from_column, const Tensor& to_MD,
                      int64_t to_column, int64_t columns);

void CheckDropoutRate(const char* kernel, float rate);  // [0, 1)

}  // namespace pipelab

#endif  // PIPELAB_KERNELS_SHAPE_CHECKS_H_
