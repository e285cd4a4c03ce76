#include "models/mining/sparse_rows.h"

#include <algorithm>

#include "glog/logging.h"

namespace pipelab {

SparseProduct::SparseProduct(const std::vector<SparseRow>& rows, int32_t columns)
    : rows_(static_cast<int64_t>(rows.size())), begin_(columns + 1, 0) {
  for (const SparseRow& row : rows) {
    for (const SparseEntry& e : row) {
      CHECK(e.column >= 0 && e.column < columns) << e.column << " of " << columns;
      ++begin_[e.column + 1];
    }
  }
  for (int32_t c = 0; c < columns; ++c) begin_[c + 1] += begin_[c];
  places_.resize(begin_.back());
  std::vector<int64_t> next(begin_.begin(), begin_.end() - 1);
  for (int64_t r = 0; r < rows_; ++r) {
    for (const SparseEntry& e : rows[r]) {
      places_[next[e.column]++] = {static_cast<int32_t>(r), e.value};
    }
  }
}

void SparseProduct::Scores(const SparseRow& x, absl::Span<float> scores) const {
  CHECK_EQ(static_cast<int64_t>(scores.size()), rows_);
  std::fill(scores.begin(), scores.end(), 0.0f);
  for (const SparseEntry& e : x) {
    for (int64_t p = begin_[e.column]; p < begin_[e.column + 1]; ++p) {
      scores[places_[p].row] += e.value * places_[p].value;
    }
  }
}

}  // namespace pipelab
