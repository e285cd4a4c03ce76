#include "kernels/shape_checks.h"

#include "glog/logging.h"
#include "kernels/embedding_kernels.h"

namespace pipelab {

RowsSize RowsOf(const Tensor& x) {
  CHECK(!x.empty()) << "an empty tensor where a kernel needs one with memory";
  CHECK(!x.shape().empty()) << "a tensor without dimensions where a kernel needs rows";
  const int64_t columns = x.shape().back();
  return {columns == 0 ? 0 : x.size() / columns, columns};
}

MatmulSize MatmulOf(const Tensor& x_MK, const Tensor& y_MN) {
  const RowsSize x = RowsOf(x_MK);
  return {x.rows, x.columns, RowsOf(y_MN).columns};
}

void CheckMatmul(const char* kernel, const Tensor& x_MK, const Tensor& w_KN, const Tensor& y_MN,
                 const Tensor& b_N) {
  const RowsSize x = RowsOf(x_MK), w = RowsOf(w_KN), y = RowsOf(y_MN);
  CHECK(x.columns == w.rows && w.columns == y.columns && x.rows == y.rows)
      << kernel << ": x " << ShapeToString(x_MK.shape()) << ", w " << ShapeToString(w_KN.shape())
      << ", y " << ShapeToString(y_MN.shape());
  CHECK(b_N.empty() || b_N.size() == w.columns)
      << kernel << ": b " << ShapeToString(b_N.shape()) << " for " << w.columns << " columns";
}

void CheckMatmulTransposed(const char* kernel, const Tensor& x_MK, const Tensor& w_NK,
                           const Tensor& y_MN) {
  const RowsSize x = RowsOf(x_MK), w = RowsOf(w_NK), y = RowsOf(y_MN);
  CHECK(x.columns == w.columns && w.rows == y.columns && x.rows == y.rows)
      << kernel << ": x " << ShapeToString(x_MK.shape()) << ", w " << ShapeToString(w_NK.shape())
      << ", y " << ShapeToString(y_MN.shape());
}

RowsSize CheckRows(const char* kernel, std::initializer_list<const Tensor*> full_MC,
                   std::initializer_list<const Tensor*> per_column_C,
                   std::initializer_list<const Tensor*> per_row_M) {
  const RowsSize size = RowsOf(**full_MC.begin());
  for (const Tensor* t : full_MC) {
    const RowsSize other = RowsOf(*t);
    CHECK(other.rows == size.rows && other.columns == size.columns)
        << kernel << ": " << ShapeToString(t->shape()) << " beside " << size.rows << " rows of "
        << size.columns;
  }
  for (const Tensor* t : per_column_C) {
    CHECK_EQ(t->size(), size.columns) << kernel << ": one element a column";
  }
  for (const Tensor* t : per_row_M) {
    CHECK_EQ(t->size(), size.rows) << kernel << ": one element a row";
  }
  return size;
}

void CheckCentering(const char* kernel, const RowsSize& size, const Tensor& beta_C,
                    const Tensor& mean_M) {
  CHECK_EQ(beta_C.empty(), mean_M.empty()) << kernel << ": both beta and mean, or neither";
  if (mean_M.empty()) return;
  CHECK_EQ(beta_C.size(), size.columns) << kernel << ": one element a column";
  CHECK_EQ(mean_M.size(), size.rows) << kernel << ": one element a row";
}

void CheckGate(const char* kernel, const Tensor& gu_M2F, const Tensor& y_MF) {
  const RowsSize pairs = RowsOf(gu_M2F), single = RowsOf(y_MF);
  CHECK(pairs.rows == single.rows && pairs.columns == 2 * single.columns)
      << kernel << ": " << ShapeToString(gu_M2F.shape()) << " beside "
      << ShapeToString(y_MF.shape());
}

int64_t CheckSameSize(const char* kernel, std::initializer_list<const Tensor*> tensors) {
  const Tensor& first = **tensors.begin();
  for (const Tensor* t : tensors) {
    CHECK(!t->empty() && t->size() == first.size()) << kernel << ": " << ShapeToString(t->shape())
                                                    << " beside " << ShapeToString(first.shape());
  }
  return first.size();
}

void CheckIndices(const char* kernel, const Tensor& indices_M, int64_t count, int64_t bound,
                  int32_t none) {
  CHECK_EQ(indices_M.size(), count) << kernel << ": one index a row";
  if (!indices_M.on_host()) return;
  for (int32_t i : indices_M.i32()) {
    CHECK(i == none || (0 <= i && i < bound))
        << kernel << ": index " << i << " of a table of " << bound;
  }
}

void CheckEmbeddingPart(const char* kernel, const Tensor& tokens_M, const Tensor& table_VC,
                        const Tensor& positions_TC, const Tensor& y_MC) {
  const RowsSize y = RowsOf(y_MC), table = RowsOf(table_VC);
  CHECK_EQ(tokens_M.size(), y.rows) << kernel << ": one index a row";
  CHECK(y.columns == table.columns) << kernel << ": table " << ShapeToString(table_VC.shape())
                                    << ", rows " << ShapeToString(y_MC.shape());
  if (!positions_TC.empty()) CheckEmbedding(kernel, table_VC, positions_TC, y_MC);
}

RowsSize CheckEmbedding(const char* kernel, const Tensor& table_VC, const Tensor& positions_TC,
                        const Tensor& y_MC) {
  const RowsSize y = RowsOf(y_MC), table = RowsOf(table_VC), positions = RowsOf(positions_TC);
  CHECK(y.columns == table.columns && y.columns == positions.columns && positions.rows > 0 &&
        y.rows % positions.rows == 0)
      << kernel << ": table " << ShapeToString(table_VC.shape()) << ", positions "
      << ShapeToString(positions_TC.shape()) << ", rows " << ShapeToString(y_MC.shape());
  return y;
}

void CheckEmbeddingBag(const char* kernel, const Tensor& ids_MB, const Tensor& table_VC,
                       const Tensor& y_MC) {
  const RowsSize y = RowsOf(y_MC), table = RowsOf(table_VC);
  CHECK(y.columns == table.columns && y.rows > 0 && ids_MB.size() % y.rows == 0)
      << kernel << ": ids " << ShapeToString(ids_MB.shape()) << ", table "
      << ShapeToString(table_VC.shape()) << ", rows " << ShapeToString(y_MC.shape());
  CheckIndices(kernel, ids_MB, ids_MB.size(), table.rows, kNoId);
}

void CheckCopyColumns(const Tensor& from_MC, int64_t from_column, const Tensor& to_MD,
                      int64_t to_column, int64_t columns) {
  const RowsSize from = RowsOf(from_MC), to = RowsOf(to_MD);
  CHECK(from.rows == to.rows && columns >= 0 && from_column >= 0 && to_column >= 0 &&
        from_column + columns <= from.columns && to_column + columns <= to.columns)
      << "CopyColumns: " << columns << " columns from " << from_column << " of "
      << ShapeToString(from_MC.shape()) << " to " << to_column << " of "
      << ShapeToString(to_MD.shape());
}

void CheckVelocity(const char* kernel, const Tensor& w, float momentum, const Tensor& velocity) {
  if (velocity.empty()) {
    CHECK_EQ(momentum, 0) << kernel << ": momentum without a velocity";
  } else {
    CheckSameSize(kernel, {&w, &velocity});
  }
}

void CheckDropoutRate(const char* kernel, float rate) {
  CHECK(rate >= 0 && rate < 1) << kernel << ": a dropout rate of " << rate;
}

}  // namespace pipelab
