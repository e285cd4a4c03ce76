// Rows of which few columns are not zero, and their inner products.
//
//   const SparseRow row = {{3, 0.5f}, {70, 1.0f}};
//   const SparseProduct product(y_rows, columns);
//   product.Scores(row, absl::MakeSpan(scores));      // with each of y_rows
//
// Sums run in the order of the row's entries, so bits do not depend on threads.
#ifndef PIPELAB_MODELS_MINING_SPARSE_ROWS_H_
#define PIPELAB_MODELS_MINING_SPARSE_ROWS_H_

#include <cstdint>
#include <vector>

#include "absl/types/span.h"

namespace pipelab {

struct SparseEntry {
  int32_t column;
  float value;
};
using SparseRow = std::vector<SparseEntry>;  // sorted by column, each at most once

class SparseProduct {
 public:
  // All columns are in [0, columns) (CHECKed).
  SparseProduct(const std::vector<SparseRow>& rows, int32_t columns);

  // scores[j] is the inner product with row j; as many as there are rows (CHECKed).
  void Scores(const SparseRow& x, absl::Span<float> scores) const;

 private:
  struct Place {
    int32_t row;
    float value;
  };
  int64_t rows_;
  std::vector<int64_t> begin_;  // of each column's places, and the end
  std::vector<Place> places_;
};

}  // namespace pipelab

#endif  // PIPELAB_MODELS_MINING_SPARSE_ROWS_H_
