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

void EmbeddingPart(const RowsSize& size, Indices tokens_M, int64_t first, In table_VC,
                   In positions_TC, Out y_MC) {
  const int64_t c = size.columns, rows = static_cast<int64_t>(table_VC.size()) / c;
  const int64_t positions = static_cast<int64_t>(positions_TC.size());
  for (int64_t i = 0; i < size.rows; ++i) {
    const int64_t row = tokens_M[i] - first;
    for (int64_t j = 0; j < c; ++j) {
      double& y = y_MC[i * c + j];
      y = 0 <= row && row < rows ? table_VC[row * c + j] : 0;
      if (positions > 0) y += positions_TC[(i * c + j) % positions];
    }
  }
}

void EmbeddingPartWeightGradient(const RowsSize& size, Indices tokens_M, int64_t first, In dy_MC,
                                 Out dtable_VC, Out dpositions_TC) {
  const int64_t c = size.columns, rows = static_cast<int64_t>(dtable_VC.size()) / c;
  const int64_t positions = static_cast<int64_t>(dpositions_TC.size());
  for (int64_t i = 0; i < size.rows; ++i) {
    const int64_t row = tokens_M[i] - first;
    for (int64_t j = 0; j < c; ++j) {
      const double dy = dy_MC[i * c + j];
      if (0 <= row && row < rows) dtable_VC[row * c + j] += dy;
      if (positions > 0) dpositions_TC[(i * c + j) % positions] += dy;
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
