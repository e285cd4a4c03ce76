#include <memory>

#include "kernels/reference/functions.h"
#include "kernels/reference/groups.h"
#include "kernels/reference/wide.h"
#include "kernels/shape_checks.h"

namespace pipelab {
namespace reference {
namespace {

class ReferenceEmbeddingKernels final : public EmbeddingKernels {
 public:
  void DoLookup(const Tensor& tokens_M, const Tensor& table_VC, const Tensor& positions_TC,
                const Tensor& y_MC) override {
    const RowsSize size = RowsOf(y_MC);
    const auto tokens = tokens_M.i32();
    Embedding(size, tokens, Wide(table_VC), Wide(positions_TC), WideResult(y_MC));
  }
  void DoLookupWeightGradient(const Tensor& tokens_M, const Tensor& dy_MC, const Tensor& dtable_VC,
                              const Tensor& dpositions_TC) override {
    const RowsSize size = RowsOf(dy_MC);
    const auto tokens = tokens_M.i32();
    EmbeddingWeightGradient(size, tokens, Wide(dy_MC), WideResult(dtable_VC),
                            WideResult(dpositions_TC));
  }

  void DoLookupPart(const Tensor& tokens_M, int64_t first, const Tensor& table_VC,
                    const Tensor& positions_TC, const Tensor& y_MC) override {
    const RowsSize size = RowsOf(y_MC);
    EmbeddingPart(size, tokens_M.i32(), first, Wide(table_VC), Wide(positions_TC),
                  WideResult(y_MC));
  }
  void DoLookupPartWeightGradient(const Tensor& tokens_M, int64_t first, const Tensor& dy_MC,
                                  const Tensor& dtable_VC, const Tensor& dpositions_TC) override {
    const RowsSize size = RowsOf(dy_MC);
    EmbeddingPartWeightGradient(size, tokens_M.i32(), first, Wide(dy_MC), WideResult(dtable_VC),
                                WideResult(dpositions_TC));
  }

  void DoBag(const Tensor& ids_MB, const Tensor& table_VC, BagMode mode,
             const Tensor& y_MC) override {
    const RowsSize size = RowsOf(y_MC);
    EmbeddingBag(size, ids_MB.i32(), Wide(table_VC), mode, WideResult(y_MC));
  }
  void DoBagWeightGradient(const Tensor& ids_MB, const Tensor& dy_MC, BagMode mode,
                           const Tensor& dtable_VC) override {
    const RowsSize size = RowsOf(dy_MC);
    EmbeddingBagWeightGradient(size, ids_MB.i32(), Wide(dy_MC), mode, WideResult(dtable_VC));
  }
};

}  // namespace

std::unique_ptr<EmbeddingKernels> MakeEmbeddingKernels() {
  return std::make_unique<ReferenceEmbeddingKernels>();
}

}  // namespace reference
}  // namespace pipelab
