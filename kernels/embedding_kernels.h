// Rows of tables, looked up by number.
//
//   backend->embedding().Lookup(tokens_M, table_VC, positions_TC, y_MC);
//   backend->embedding().Bag(ids_MB, table_VC, BagMode::kSum, y_MC);
//
// Weight gradients are added row by row in the order of the call, so the same call gives the same
// bits however often a row occurs. There is no input gradient: numbers have none.
#ifndef PIPELAB_KERNELS_EMBEDDING_KERNELS_H_
#define PIPELAB_KERNELS_EMBEDDING_KERNELS_H_

#include <cstdint>

#include "kernels/shape_checks.h"
#include "kernels/tensor/tensor.h"

namespace pipelab {

enum class BagMode : uint8_t { kSum, kMean };

// In place of an id: nothing. Bags of fewer ids end with it.
inline constexpr int32_t kNoId = -1;

class EmbeddingKernels {
 public:
  virtual ~EmbeddingKernels() = default;

  // y[i] = table[tokens[i]] + positions[i % tokens per sample].
  void Lookup(const Tensor& tokens_M, const Tensor& table_VC, const Tensor& positions_TC,
              const Tensor& y_MC) {
    const RowsSize y = CheckEmbedding("Embedding", table_VC, positions_TC, y_MC);
    CheckIndices("Embedding", tokens_M, y.rows, RowsOf(table_VC).rows);
    DoLookup(tokens_M, table_VC, positions_TC, y_MC);
  }
  void LookupWeightGradient(const Tensor& tokens_M, const Tensor& dy_MC, const Tensor& dtable_VC,
                            const Tensor& dpositions_TC) {
    const RowsSize dy = CheckEmbedding("EmbeddingWeightGradient", dtable_VC, dpositions_TC, dy_MC);
    CheckIndices("EmbeddingWeightGradient", tokens_M, dy.rows, RowsOf(dtable_VC).rows);
    DoLookupWeightGradient(tokens_M, dy_MC, dtable_VC, dpositions_TC);
  }

  // The same where the device has the rows [first, first + V) of a table alone: zeros for the
  // tokens of other rows. Without positions where they are empty.
  void LookupPart(const Tensor& tokens_M, int64_t first, const Tensor& table_VC,
                  const Tensor& positions_TC, const Tensor& y_MC) {
    CheckEmbeddingPart("EmbeddingPart", tokens_M, table_VC, positions_TC, y_MC);
    DoLookupPart(tokens_M, first, table_VC, positions_TC, y_MC);
  }
  void LookupPartWeightGradient(const Tensor& tokens_M, int64_t first, const Tensor& dy_MC,
                                const Tensor& dtable_VC, const Tensor& dpositions_TC) {
    CheckEmbeddingPart("EmbeddingPartWeightGradient", tokens_M, dtable_VC, dpositions_TC, dy_MC);
    DoLookupPartWeightGradient(tokens_M, first, dy_MC, dtable_VC, dpositions_TC);
  }

  // y[i] = the sum or the mean of table[ids[i, b]] over the bag's ids that are not kNoId; zeros for
  // an empty bag.
  void Bag(const Tensor& ids_MB, const Tensor& table_VC, BagMode mode, const Tensor& y_MC) {
    CheckEmbeddingBag("EmbeddingBag", ids_MB, table_VC, y_MC);
    DoBag(ids_MB, table_VC, mode, y_MC);
  }
  void BagWeightGradient(const Tensor& ids_MB, const Tensor& dy_MC, BagMode mode,
                         const Tensor& dtable_VC) {
    CheckEmbeddingBag("EmbeddingBagWeightGradient", ids_MB, dtable_VC, dy_MC);
    DoBagWeightGradient(ids_MB, dy_MC, mode, dtable_VC);
  }

 private:
  // What a backend does, once the shapes are checked.
  virtual void DoLookup(const Tensor& tokens_M, const Tensor& table_VC, const Tensor& positions_TC,
                        const Tensor& y_MC) = 0;
  virtual void DoLookupWeightGradient(const Tensor& tokens_M, const Tensor& dy_MC,
                                      const Tensor& dtable_VC, const Tensor& dpositions_TC) = 0;
  virtual void DoLookupPart(const Tensor& tokens_M, int64_t first, const Tensor& table_VC,
                            const Tensor& positions_TC, const Tensor& y_MC) = 0;
  virtual void DoLookupPartWeightGradient(const Tensor& tokens_M, int64_t first,
                                          const Tensor& dy_MC, const Tensor& dtable_VC,
                                          const Tensor& dpositions_TC) = 0;
  virtual void DoBag(const Tensor& ids_MB, const Tensor& table_VC, BagMode mode,
                     const Tensor& y_MC) = 0;
  virtual void DoBagWeightGradient(const Tensor& ids_MB, const Tensor& dy_MC, BagMode mode,
                                   const Tensor& dtable_VC) = 0;
};

}  // namespace pipelab

#endif  // PIPELAB_KERNELS_EMBEDDING_KERNELS_H_
