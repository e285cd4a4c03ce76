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

  void Lookup(const Tensor& tokens_M, const Tensor& table_VC, const Tensor& positions_TC,
              const Tensor& y_MC) override {
    const auto [m, c] = CheckEmbedding("Embedding", table_VC, positions_TC, y_MC);
    CheckIndices("Embedding", tokens_M, m, RowsOf(table_VC).rows);
    gpu::Lookup(*device_, Ids(tokens_M), 0, Data(table_VC), RowsOf(table_VC).rows,
                Data(positions_TC), PeriodOf(positions_TC), /*strict=*/true, m, c, Data(y_MC));
  }
  void LookupWeightGradient(const Tensor& tokens_M, const Tensor& dy_MC, const Tensor& dtable_VC,
                            const Tensor& dpositions_TC) override {
    const auto [m, c] = CheckEmbedding("EmbeddingWeightGradient", dtable_VC, dpositions_TC, dy_MC);
    CheckIndices("EmbeddingWeightGradient", tokens_M, m, RowsOf(dtable_VC).rows);
    AddToTable(tokens_M, 0, 1, /*mean=*/false, dy_MC, dtable_VC);
    PositionsGradient(*device_, Data(dy_MC), PeriodOf(dpositions_TC), m, c, Data(dpositions_TC));
  }

  void LookupPart(const Tensor& tokens_M, int64_t first, const Tensor& table_VC,
                  const Tensor& positions_TC, const Tensor& y_MC) override {
    const auto [m, c] = CheckEmbeddingPart("EmbeddingPart", tokens_M, table_VC, positions_TC, y_MC);
    gpu::Lookup(*device_, Ids(tokens_M), first, Data(table_VC), RowsOf(table_VC).rows,
                Data(positions_TC), PeriodOf(positions_TC), /*strict=*/false, m, c, Data(y_MC));
  }
  void LookupPartWeightGradient(const Tensor& tokens_M, int64_t first, const Tensor& dy_MC,
                                const Tensor& dtable_VC, const Tensor& dpositions_TC) override {
    const auto [m, c] = CheckEmbeddingPart("EmbeddingPartWeightGradient", tokens_M, dtable_VC,
                                           dpositions_TC, dy_MC);
    AddToTable(tokens_M, first, 1, /*mean=*/false, dy_MC, dtable_VC);
    if (dpositions_TC.empty()) return;
    PositionsGradient(*device_, Data(dy_MC), PeriodOf(dpositions_TC), m, c, Data(dpositions_TC));
  }

  void Bag(const Tensor& ids_MB, const Tensor& table_VC, BagMode mode,
           const Tensor& y_MC) override {
    const auto [m, c] = CheckEmbeddingBag("EmbeddingBag", ids_MB, table_VC, y_MC);
    gpu::Bag(*device_, Ids(ids_MB), ids_MB.size() / m, Data(table_VC), RowsOf(table_VC).rows,
             mode == BagMode::kMean, m, c, Data(y_MC));
  }
  void BagWeightGradient(const Tensor& ids_MB, const Tensor& dy_MC, BagMode mode,
                         const Tensor& dtable_VC) override {
    const RowsSize size = CheckEmbeddingBag("EmbeddingBagWeightGradient", ids_MB, dtable_VC, dy_MC);
    AddToTable(ids_MB, 0, ids_MB.size() / size.rows, mode == BagMode::kMean, dy_MC, dtable_VC);
  }

 private:
  void AddToTable(const Tensor& ids, int64_t first, int64_t bag, bool mean, const Tensor& dy,
                  const Tensor& dtable) {
    const RowsSize table = RowsOf(dtable);
    RowsGradient(*device_, Ids(ids), ids.size(), bag, first, mean, Data(dy), table.columns,
                 table.rows, Data(dtable));
  }

  Device* const device_;
};

}  // namespace

std::unique_ptr<EmbeddingKernels> MakeEmbeddingKernels(Device* device) {
  return std::make_unique<CudaEmbeddingKernels>(device);
}

}  // namespace gpu
}  // namespace pipelab
