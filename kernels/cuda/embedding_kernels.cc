#include <memory>

#include "kernels/cuda/functions.h"
#include "kernels/cuda/groups.h"
#include "kernels/shape_checks.h"

namespace pipelab {
namespace gpu {
namespace {

int64_t PeriodOf(const Tensor& positions_TC) {
  return positions_TC.empty() ? 1 : RowsOf(positions_TC).rows;
}

class CudaEmbeddingKernels final : public EmbeddingKernels {
 public:
  explicit CudaEmbeddingKernels(Device* device) : device_(device) {}

  void DoLookup(const Tensor& tokens_M, const Tensor& table_VC, const Tensor& positions_TC,
                const Tensor& y_MC) override {
    const RowsSize size = RowsOf(y_MC);
    LookUp(tokens_M, 0, table_VC, positions_TC, /*strict=*/true, size, y_MC);
  }
  void DoLookupWeightGradient(const Tensor& tokens_M, const Tensor& dy_MC, const Tensor& dtable_VC,
                              const Tensor& dpositions_TC) override {
    const RowsSize size = RowsOf(dy_MC);
    AddToTable(tokens_M, 0, 1, /*mean=*/false, dy_MC, dtable_VC);
    AddToPositions(dy_MC, size, dpositions_TC);
  }

  void DoLookupPart(const Tensor& tokens_M, int64_t first, const Tensor& table_VC,
                    const Tensor& positions_TC, const Tensor& y_MC) override {
    const RowsSize size = RowsOf(y_MC);
    LookUp(tokens_M, first, table_VC, positions_TC, /*strict=*/false, size, y_MC);
  }
  void DoLookupPartWeightGradient(const Tensor& tokens_M, int64_t first, const Tensor& dy_MC,
                                  const Tensor& dtable_VC, const Tensor& dpositions_TC) override {
    const RowsSize size = RowsOf(dy_MC);
    AddToTable(tokens_M, first, 1, /*mean=*/false, dy_MC, dtable_VC);
    if (!dpositions_TC.empty()) AddToPositions(dy_MC, size, dpositions_TC);
  }

  void DoBag(const Tensor& ids_MB, const Tensor& table_VC, BagMode mode,
             const Tensor& y_MC) override {
    const RowsSize size = RowsOf(y_MC);
    ByType(y_MC, [&](auto at) {
      gpu::Bag(*device_, Ids(ids_MB), ids_MB.size() / size.rows, at(table_VC),
               RowsOf(table_VC).rows, mode == BagMode::kMean, size.rows, size.columns, at(y_MC));
    });
  }
  void DoBagWeightGradient(const Tensor& ids_MB, const Tensor& dy_MC, BagMode mode,
                           const Tensor& dtable_VC) override {
    const RowsSize size = RowsOf(dy_MC);
    AddToTable(ids_MB, 0, ids_MB.size() / size.rows, mode == BagMode::kMean, dy_MC, dtable_VC);
  }

 private:
  void LookUp(const Tensor& tokens, int64_t first, const Tensor& table, const Tensor& positions,
              bool strict, const RowsSize& size, const Tensor& y) {
    ByType(y, [&](auto at) {
      gpu::Lookup(*device_, Ids(tokens), first, at(table), RowsOf(table).rows, at(positions),
                  PeriodOf(positions), strict, size.rows, size.columns, at(y));
    });
  }
  void AddToPositions(const Tensor& dy, const RowsSize& size, const Tensor& dpositions) {
    ByType(dy, [&](auto at) {
      PositionsGradient(*device_, at(dy), PeriodOf(dpositions), size.rows, size.columns,
                        Data(dpositions));
    });
  }
  void AddToTable(const Tensor& ids, int64_t first, int64_t bag, bool mean, const Tensor& dy,
                  const Tensor& dtable) {
    const RowsSize table = RowsOf(dtable);
    ByType(dy, [&](auto at) {
      RowsGradient(*device_, Ids(ids), ids.size(), bag, first, mean, at(dy), table.columns,
                   table.rows, Data(dtable));
    });
  }

  Device* const device_;
};

}  // namespace

std::unique_ptr<EmbeddingKernels> MakeEmbeddingKernels(Device* device) {
  return std::make_unique<CudaEmbeddingKernels>(device);
}

}  // namespace gpu
}  // namespace pipelab
