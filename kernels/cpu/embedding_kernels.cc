#include <algorithm>
#include <memory>

#include "kernels/cpu/elementwise.h"
#include "kernels/cpu/groups.h"
#include "kernels/shape_checks.h"

namespace pipelab {
namespace cpu {
namespace {

float BagFactor(absl::Span<const int32_t> bag, BagMode mode) {
  const int64_t ids = std::count_if(bag.begin(), bag.end(), [](int32_t i) { return i != kNoId; });
  return mode == BagMode::kMean && ids > 0 ? 1.0f / static_cast<float>(ids) : 1.0f;
}

class CpuEmbeddingKernels final : public EmbeddingKernels {
 public:
  void DoLookup(const Tensor& tokens_M, const Tensor& table_VC, const Tensor& positions_TC,
                const Tensor& y_MC) override {
    const auto [m, c] = RowsOf(y_MC);
    const auto tokens = tokens_M.i32();
    const int64_t period = RowsOf(positions_TC).rows;
    for (int64_t i = 0; i < m; ++i) {
      AddVectors(Data(table_VC) + tokens[i] * c, Data(positions_TC) + i % period * c, c,
                 Data(y_MC) + i * c);
    }
  }
  void DoLookupWeightGradient(const Tensor& tokens_M, const Tensor& dy_MC, const Tensor& dtable_VC,
                              const Tensor& dpositions_TC) override {
    const auto [m, c] = RowsOf(dy_MC);
    const auto tokens = tokens_M.i32();
    const int64_t period = RowsOf(dpositions_TC).rows;
    const float* dy = Data(dy_MC);
    for (int64_t i = 0; i < m; ++i, dy += c) {
      AddColumnSums(dy, 1, c, Data(dtable_VC) + tokens[i] * c);
      AddColumnSums(dy, 1, c, Data(dpositions_TC) + i % period * c);
    }
  }

  void DoLookupPart(const Tensor& tokens_M, int64_t first, const Tensor& table_VC,
                    const Tensor& positions_TC, const Tensor& y_MC) override {
    const auto [m, c] = RowsOf(y_MC);
    const auto tokens = tokens_M.i32();
    const int64_t rows = RowsOf(table_VC).rows;
    const bool positions = !positions_TC.empty();
    const int64_t period = positions ? RowsOf(positions_TC).rows : 1;
    for (int64_t i = 0; i < m; ++i) {
      const int64_t row = tokens[i] - first;
      const bool here = 0 <= row && row < rows;
      float* y = Data(y_MC) + i * c;
      const float* position = positions ? Data(positions_TC) + i % period * c : nullptr;
      if (here && positions) {
        AddVectors(Data(table_VC) + row * c, position, c, y);
      } else if (here || positions) {
        std::copy_n(here ? Data(table_VC) + row * c : position, c, y);
      } else {
        std::fill_n(y, c, 0.0f);
      }
    }
  }
  void DoLookupPartWeightGradient(const Tensor& tokens_M, int64_t first, const Tensor& dy_MC,
                                  const Tensor& dtable_VC, const Tensor& dpositions_TC) override {
    const auto [m, c] = RowsOf(dy_MC);
    const auto tokens = tokens_M.i32();
    const int64_t rows = RowsOf(dtable_VC).rows;
    const bool positions = !dpositions_TC.empty();
    const int64_t period = positions ? RowsOf(dpositions_TC).rows : 1;
    const float* dy = Data(dy_MC);
    for (int64_t i = 0; i < m; ++i, dy += c) {
      const int64_t row = tokens[i] - first;
      if (0 <= row && row < rows) AddColumnSums(dy, 1, c, Data(dtable_VC) + row * c);
      if (positions) AddColumnSums(dy, 1, c, Data(dpositions_TC) + i % period * c);
    }
  }

  void DoBag(const Tensor& ids_MB, const Tensor& table_VC, BagMode mode,
             const Tensor& y_MC) override {
    const auto [m, c] = RowsOf(y_MC);
    const int64_t bag_size = ids_MB.size() / m;
    const float* table = Data(table_VC);
    for (int64_t i = 0; i < m; ++i) {
      const auto bag = ids_MB.i32().subspan(i * bag_size, bag_size);
      const float factor = BagFactor(bag, mode);
      float* y = Data(y_MC) + i * c;
      std::fill_n(y, c, 0.0f);
      for (int32_t id : bag) {
        if (id != kNoId) AddScaled(factor, table + id * c, c, y);
      }
    }
  }
  void DoBagWeightGradient(const Tensor& ids_MB, const Tensor& dy_MC, BagMode mode,
                           const Tensor& dtable_VC) override {
    const auto [m, c] = RowsOf(dy_MC);
    const int64_t bag_size = ids_MB.size() / m;
    const float* dy = Data(dy_MC);
    for (int64_t i = 0; i < m; ++i, dy += c) {
      const auto bag = ids_MB.i32().subspan(i * bag_size, bag_size);
      const float factor = BagFactor(bag, mode);
      for (int32_t id : bag) {
        if (id != kNoId) AddScaled(factor, dy, c, Data(dtable_VC) + id * c);
      }
    }
  }
};

}  // namespace

std::unique_ptr<EmbeddingKernels> MakeEmbeddingKernels() {
  return std::make_unique<CpuEmbeddingKernels>();
}

}  // namespace cpu
}  // namespace pipelab
