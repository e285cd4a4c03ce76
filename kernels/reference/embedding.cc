#include <algorithm>

#include "kernels/reference/functions.h"

namespace pipelab {
namespace reference {
namespace {

double BagFactor(Indices bag, BagMode mode) {
  const int64_t ids = std::count_if(bag.begin(), bag.end(), [](int32_t i) { return i != kNoId; });
  return mode == BagMode::kMean && ids > 0 ? 1 / static_cast<double>(ids) : 1;
}

}  // namespace

void Embedding(const RowsSize& size, Indices tokens_M, In table_VC, In positions_TC, Out y_MC) {
  const int64_t c = size.columns, period = static_cast<int64_t>(positions_TC.size()) / c;
  for (int64_t i = 0; i < size.rows; ++i) {
    for (int64_t j = 0; j < c; ++j) {
      y_MC[i * c + j] = table_VC[tokens_M[i] * c + j] + positions_TC[i % period * c + j];
    }
  }
}

void EmbeddingWeightGradient(const RowsSize& size, Indices tokens_M, In dy_MC, Out dtable_VC,
                             Out dpositions_TC) {
  const int64_t c = size.columns, period = static_cast<int64_t>(dpositions_TC.size()) / c;
  for (int64_t i = 0; i < size.rows; ++i) {
    for (int64_t j = 0; j < c; ++j) {
      dtable_VC[tokens_M[i] * c + j] += dy_MC[i * c + j];
      dpositions_TC[i % period * c + j] += dy_MC[i * c + j];
    }
  }
}

void EmbeddingBag(const RowsSize& size, Indices ids_MB, In table_VC, BagMode mode, Out y_MC) {
  const int64_t c = size.columns, bag_size = static_cast<int64_t>(ids_MB.size()) / size.rows;
  std::fill(y_MC.begin(), y_MC.end(), 0.0);
  for (int64_t i = 0; i < size.rows; ++i) {
    const Indices bag = ids_MB.subspan(i * bag_size, bag_size);
    const double factor = BagFactor(bag, mode);
    for (int32_t id : bag) {
      if (id == kNoId) continue;
      for (int64_t j = 0; j < c; ++j) y_MC[i * c + j] += factor * table_VC[id * c + j];
    }
  }
}

void EmbeddingBagWeightGradient(const RowsSize& size, Indices ids_MB, In dy_MC, BagMode mode,
                                Out dtable_VC) {
  const int64_t c = size.columns, bag_size = static_cast<int64_t>(ids_MB.size()) / size.rows;
  for (int64_t i = 0; i < size.rows; ++i) {
    const Indices bag = ids_MB.subspan(i * bag_size, bag_size);
    const double factor = BagFactor(bag, mode);
    for (int32_t id : bag) {
      if (id == kNoId) continue;
      for (int64_t j = 0; j < c; ++j) dtable_VC[id * c + j] += factor * dy_MC[i * c + j];
    }
  }
}

}  // namespace reference
}  // namespace pipelab
