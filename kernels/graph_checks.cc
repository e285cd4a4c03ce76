#include "glog/logging.h"
#include "kernels/graph_kernels.h"
#include "kernels/shape_checks.h"

namespace pipelab {
namespace {

void CheckOffsets(const char* kernel, const Tensor& offsets, int64_t rows, int64_t edges) {
  CHECK_EQ(offsets.size(), rows + 1) << kernel << ": offsets";
  if (!offsets.on_host()) return;
  const auto of = offsets.i32();
  CHECK(of[0] == 0 && of[rows] == edges)
      << kernel << ": offsets from " << of[0] << " to " << of[rows] << " of " << edges << " edges";
  for (int64_t i = 0; i < rows; ++i) CHECK_LE(of[i], of[i + 1]) << kernel << ": offset " << i;
}

}  // namespace

void CheckGraphIndex(const char* kernel, const GraphIndex& index) {
  CHECK(0 <= index.num_targets && index.num_targets <= index.num_sources)
      << kernel << ": " << index.num_targets << " targets of " << index.num_sources << " sources";
  CheckOffsets(kernel, index.offsets_T1, index.num_targets, index.num_edges);
  CheckOffsets(kernel, index.back_offsets_S1, index.num_sources, index.num_edges);
  CheckIndices(kernel, index.sources_E, index.num_edges, index.num_sources);
  CheckIndices(kernel, index.targets_E, index.num_edges, index.num_targets);
  CheckIndices(kernel, index.back_edges_E, index.num_edges, index.num_edges);
}

void CheckAggregate(const char* kernel, const GraphIndex& index, const Tensor& x_SC,
                    const Tensor& y_TC) {
  const RowsSize x = RowsOf(x_SC), y = RowsOf(y_TC);
  CHECK(x.rows == index.num_sources && y.rows == index.num_targets && x.columns == y.columns)
      << kernel << ": " << ShapeToString(x_SC.shape()) << " to " << ShapeToString(y_TC.shape())
      << " along edges from " << index.num_sources << " to " << index.num_targets;
}

void CheckHeads(const char* kernel, const Tensor& a_EH, int64_t rows, const Tensor& x_MC) {
  const RowsSize a = RowsOf(a_EH);
  CHECK(a.rows == rows && a.columns > 0)
      << kernel << ": " << ShapeToString(a_EH.shape()) << " for " << rows << " rows";
  if (x_MC.empty()) return;
  CHECK_EQ(RowsOf(x_MC).columns % a.columns, 0)
      << kernel << ": " << a.columns << " heads of " << ShapeToString(x_MC.shape());
}

void CheckGather(const char* kernel, const Tensor& ids_M, const Tensor& x_VC, const Tensor& y_MC) {
  const RowsSize y = RowsOf(y_MC);
  CHECK_EQ(ids_M.size(), y.rows) << kernel << ": one number a row";
  if (x_VC.empty()) return;
  CHECK_EQ(RowsOf(x_VC).columns, y.columns) << kernel << ": columns";
  CheckIndices(kernel, ids_M, y.rows, RowsOf(x_VC).rows);
}

}  // namespace pipelab
