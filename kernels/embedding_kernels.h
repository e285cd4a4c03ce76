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

#include "kernels/tensor/tensor.h"

namespace pipelab {

enum class BagMode : uint8_t { kSum, kMean };

// In place of an id: nothing. Bags of fewer ids end with it.
inline constexpr int32_t kNoId = -1;

class EmbeddingKernels {
 public:
  virtual ~EmbeddingKernels() = default;

  // y[i] = table[tokens[i]] + positions[i % tokens per sample].
  virtual void Lookup(const Tensor& tokens_M, const Tensor& table_VC, const Tensor& positions_TC,
                      const Tensor& y_MC) = 0;
  virtual void LookupWeightGradient(const Tensor& tokens_M, const Tensor& dy_MC,
                                    const Tensor& dtable_VC, const Tensor& dpositions_TC) = 0;

  // The same where the device has the rows [first, first + V) of a table alone: zeros for the
  // tokens of other rows. Without positions where they are empty.
  virtual void LookupPart(const Tensor& tokens_M, int64_t first, const Tensor& table_VC,
                          const Tensor& positions_TC, const Tensor& y_MC) = 0;
  virtual void LookupPartWeightGradient(const Tensor& tokens_M, int64_t first, const Tensor& dy_MC,
                                        const Tensor& dtable_VC, const Tensor& dpositions_TC) = 0;

  // y[i] = the sum or the mean of table[ids[i, b]] over the bag's ids that are not kNoId; zeros for
  // an empty bag.
  virtual void Bag(const Tensor& ids_MB, const Tensor& table_VC, BagMode mode,
                   const Tensor& y_MC) = 0;
  virtual void BagWeightGradient(const Tensor& ids_MB, const Tensor& dy_MC, BagMode mode,
                                 const Tensor& dtable_VC) = 0;
};

}  // namespace pipelab

#endif  // PIPELAB_KERNELS_EMBEDDING_KERNELS_H_
