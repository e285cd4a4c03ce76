// The checks of attention.
#include <initializer_list>

#include "glog/logging.h"
#include "kernels/attention_kernels.h"
#include "kernels/shape_checks.h"

namespace pipelab {
namespace {

void CheckRowsOf(const char* kernel, std::initializer_list<const Tensor*> tensors, int64_t rows,
                 int64_t columns) {
  for (const Tensor* t : tensors) {
    const RowsSize size = RowsOf(*t);
    CHECK(size.rows == rows && size.columns == columns)
        << kernel << ": " << ShapeToString(t->shape()) << " where " << rows << " rows of "
        << columns << " belong";
  }
}

void CheckKeyLengths(const char* kernel, absl::Span<const int32_t> lengths, int64_t samples,
                     int64_t keys) {
  if (lengths.empty()) return;
  CHECK_EQ(static_cast<int64_t>(lengths.size()), samples)
      << kernel << ": one key length per sample";
  for (int32_t length : lengths) {
    CHECK(1 <= length && length <= keys) << kernel << ": " << length << " of " << keys << " keys";
  }
}

}  // namespace

void CheckAttention(const char* kernel, const AttentionShape& shape,
                    std::initializer_list<const Tensor*> qkv_M3C,
                    std::initializer_list<const Tensor*> out_MC, const Tensor& lse_SHQ) {
  CHECK(shape.samples > 0 && shape.tokens > 0 && shape.heads > 0 && shape.head_size > 0) << kernel;
  CHECK(shape.first_query >= 0 && shape.queries >= 0 && shape.end_query() <= shape.tokens)
      << kernel << ": queries [" << shape.first_query << ", " << shape.end_query() << ") of "
      << shape.tokens << " tokens";
  CHECK(!shape.causal || shape.key_lengths.empty())
      << kernel << ": key lengths in causal attention";
  CHECK(shape.window >= 0 && (shape.window == 0 || shape.causal))
      << kernel << ": a window of " << shape.window << " without a causal mask";
  CHECK_GE(shape.key_tile, 0) << kernel;
  CheckKeyLengths(kernel, shape.key_lengths, shape.samples, shape.tokens);
  CHECK(shape.kv_heads >= 0 && (shape.kv_heads == 0 || shape.heads % shape.kv_heads == 0))
      << kernel << ": " << shape.heads << " heads share " << shape.kv_heads;
  const int64_t width = shape.heads * shape.head_size;
  const int64_t queries = shape.samples * shape.num_queries();
  CheckRowsOf(kernel, qkv_M3C, shape.samples * shape.tokens, width + 2 * shape.kv_width());
  CheckRowsOf(kernel, out_MC, queries, width);
  CHECK_EQ(lse_SHQ.size(), queries * shape.heads)
      << kernel << ": one log-sum-exp per query and head";
}

void CheckSharedHead(const char* kernel, const Tensor& x_MD, const Tensor& y) {
  const RowsSize x = RowsOf(x_MD), of_y = RowsOf(y);
  CHECK(x.rows > 0 && of_y.rows % x.rows == 0 && of_y.columns >= x.columns)
      << kernel << ": " << ShapeToString(x_MD.shape()) << " and " << ShapeToString(y.shape());
}

void CheckRotary(const char* kernel, const RotaryShape& shape, const Tensor& x_MC) {
  const RowsSize size = RowsOf(x_MC);
  CHECK(shape.head_size > 0 && shape.head_size % 2 == 0)
      << kernel << ": heads of " << shape.head_size;
  CHECK(size.rows == shape.samples * shape.tokens &&
        size.columns >= shape.heads * shape.head_stride() &&
        shape.head_stride() >= shape.head_size && shape.first_token >= 0 && shape.base > 0)
      << kernel << ": " << ShapeToString(x_MC.shape()) << " for " << shape.samples << " x "
      << shape.tokens << " tokens of " << shape.heads << " heads";
}

void CheckMerge(const char* kernel, const Tensor& part_NC, const Tensor& part_lse_HN,
                const Tensor& out_MC, const Tensor& lse_HM) {
  const RowsSize part = RowsOf(part_lse_HN), all = RowsOf(lse_HM);
  CHECK(part.rows == all.rows && part.columns <= all.columns)
      << kernel << ": " << ShapeToString(part_lse_HN.shape()) << " and "
      << ShapeToString(lse_HM.shape());
  CHECK_EQ(RowsOf(out_MC).columns % all.rows, 0) << kernel << ": heads";
  CheckRowsOf(kernel, {&out_MC}, all.columns, RowsOf(out_MC).columns);
  CheckRowsOf(kernel, {&part_NC}, part.columns, RowsOf(out_MC).columns);
}

void CheckCrossAttention(const char* kernel, const CrossAttentionShape& shape,
                         std::initializer_list<const Tensor*> q_MC,
                         std::initializer_list<const Tensor*> out_MC,
                         std::initializer_list<const Tensor*> kv_N2C, const Tensor& lse_SHQ) {
  CHECK(shape.samples > 0 && shape.queries > 0 && shape.keys > 0 && shape.heads > 0 &&
        shape.head_size > 0)
      << kernel;
  CheckKeyLengths(kernel, shape.key_lengths, shape.samples, shape.keys);
  CHECK(shape.kv_heads == 0 || shape.heads % shape.kv_heads == 0) << kernel;
  CHECK_GE(shape.first_query, 0) << kernel;
  CHECK(shape.window == 0 || shape.first_query + shape.queries - shape.window < shape.keys)
      << kernel << ": the last query sees none of " << shape.keys << " keys";
  CHECK(!shape.causal || shape.key_lengths.empty()) << kernel << ": key lengths";
  CHECK(shape.window >= 0 && (shape.window == 0 || shape.causal)) << kernel << ": a window";
  CHECK_GE(shape.key_tile, 0) << kernel;
  CHECK(shape.value_size == 0 || shape.kv_width() == shape.width())
      << kernel << ": values of another width, and keys that heads share";
  CHECK_GE(shape.row(), shape.width()) << kernel;
  const int64_t queries = shape.samples * shape.queries;
  CheckRowsOf(kernel, q_MC, queries, shape.row());
  CheckRowsOf(kernel, out_MC, queries, shape.out_width());
  CheckRowsOf(kernel, kv_N2C, shape.samples * shape.keys, shape.kv_row());
  CHECK_EQ(lse_SHQ.size(), queries * shape.heads)
      << kernel << ": one log-sum-exp per query and head";
}

}  // namespace pipelab
