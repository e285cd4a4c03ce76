#include <algorithm>
#include <cmath>
#include <memory>

#include "kernels/cpu/elementwise.h"
#include "kernels/cpu/graphs.h"
#include "kernels/cpu/groups.h"
#include "kernels/shape_checks.h"

namespace pipelab {
namespace cpu {
namespace {

int64_t ColumnsOf(const Tensor& x) { return RowsOf(x).columns; }

// Rows of a part: enough to be worth a thread's while, and few enough to share fairly.
constexpr int64_t kRowsPerPart = 256;

class CpuGraphKernels final : public GraphKernels {
 public:
  explicit CpuGraphKernels(Team* team) : team_(team) {}

  void DoGather(const Tensor& ids_M, const Tensor& x_VC, const Tensor& y_MC) override {
    const int64_t c = ColumnsOf(y_MC);
    team_->Run(ids_M.size(), kRowsPerPart, [&](int64_t begin, int64_t end) {
      GatherRows(ids_M.i32().data() + begin, end - begin, c, Data(x_VC), Data(y_MC) + begin * c);
    });
  }
  void DoDropRows(const Tensor& ids_M, const DropoutMask& mask, const Tensor& x_MC,
                  const Tensor& y_MC) override {
    const int64_t c = ColumnsOf(x_MC);
    team_->Run(ids_M.size(), kRowsPerPart, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        DropoutMask of_row = mask;
        of_row.offset += static_cast<uint64_t>(ids_M.i32()[i]) * c;
        DropoutForward(nullptr, Data(x_MC) + i * c, of_row, c, Data(y_MC) + i * c);
      }
    });
  }
  void DoAggregate(const GraphIndex& index, AggregateMode mode, const Tensor& x_SC,
                   const Tensor& y_TC) override {
    team_->Run(index.num_targets, kRowsPerPart, [&](int64_t begin, int64_t end) {
      AggregateForward(EdgesOf(index), mode, begin, end, ColumnsOf(x_SC), Data(x_SC), Data(y_TC));
    });
  }
  void DoAggregateGradient(const GraphIndex& index, AggregateMode mode, const Tensor& dy_TC,
                           const Tensor& dx_SC) override {
    team_->Run(index.num_sources, kRowsPerPart, [&](int64_t begin, int64_t end) {
      AggregateBackward(EdgesOf(index), mode, begin, end, ColumnsOf(dx_SC), Data(dy_TC),
                        Data(dx_SC));
    });
  }
  void DoHeadProducts(const Tensor& x_MC, const Tensor& w_C, const Tensor& y_MH) override {
    const int64_t size = ColumnsOf(x_MC) / ColumnsOf(y_MH), c = ColumnsOf(x_MC);
    for (int64_t i = 0; i < y_MH.size(); ++i) {
      Data(y_MH)[i] = Product(Data(x_MC) + i * size, Data(w_C) + i * size % c, size);
    }
  }
  void DoHeadProductsInputGradient(const Tensor& dy_MH, const Tensor& w_C,
                                   const Tensor& dx_MC) override {
    const int64_t size = ColumnsOf(dx_MC) / ColumnsOf(dy_MH), c = ColumnsOf(dx_MC);
    for (int64_t i = 0; i < dy_MH.size(); ++i) {
      AddScaled(Data(dy_MH)[i], Data(w_C) + i * size % c, size, Data(dx_MC) + i * size);
    }
  }
  void DoHeadProductsWeightGradient(const Tensor& x_MC, const Tensor& dy_MH,
                                    const Tensor& dw_C) override {
    const int64_t size = ColumnsOf(x_MC) / ColumnsOf(dy_MH), c = ColumnsOf(x_MC);
    for (int64_t i = 0; i < dy_MH.size(); ++i) {
      AddScaled(Data(dy_MH)[i], Data(x_MC) + i * size, size, Data(dw_C) + i * size % c);
    }
  }
  void DoEdgeSoftmax(const GraphIndex& index, float slope, const Tensor& source_SH,
                     const Tensor& target_TH, const Tensor& a_EH) override {
    EdgeSoftmaxForward(EdgesOf(index), slope, ColumnsOf(a_EH), Data(source_SH), Data(target_TH),
                       Data(a_EH));
  }
  void DoEdgeSoftmaxGradient(const GraphIndex& index, float slope, const Tensor& source_SH,
                             const Tensor& target_TH, const Tensor& a_EH, const Tensor& da_EH,
                             const Tensor& dsource_SH, const Tensor& dtarget_TH) override {
    const EdgePlaces edges = EdgesOf(index);
    EdgeSoftmaxBackward(edges, slope, ColumnsOf(a_EH), Data(source_SH), Data(target_TH), Data(a_EH),
                        Data(da_EH), Data(dtarget_TH));
    SumsOfSources(edges, ColumnsOf(a_EH), Data(da_EH), Data(dsource_SH));
  }
  void DoWeighed(const GraphIndex& index, const Tensor& a_EH, const Tensor& x_SC,
                 const Tensor& y_TC) override {
    team_->Run(index.num_targets, kRowsPerPart, [&](int64_t begin, int64_t end) {
      WeighedForward(EdgesOf(index), begin, end, ColumnsOf(x_SC), ColumnsOf(a_EH), Data(a_EH),
                     Data(x_SC), Data(y_TC));
    });
  }
  void DoWeighedGradient(const GraphIndex& index, const Tensor& a_EH, const Tensor& x_SC,
                         const Tensor& dy_TC, const Tensor& da_EH, const Tensor& dx_SC) override {
    team_->Run(index.num_sources, kRowsPerPart, [&](int64_t begin, int64_t end) {
      WeighedBackward(EdgesOf(index), begin, end, ColumnsOf(x_SC), ColumnsOf(a_EH), Data(a_EH),
                      Data(x_SC), Data(dy_TC), Data(da_EH), Data(dx_SC));
    });
  }

 private:
  static EdgePlaces EdgesOf(const GraphIndex& index) {
    const auto at = [](const Tensor& x) { return x.i32().data(); };
    return {index.num_sources,     index.num_targets,   at(index.offsets_T1),
            at(index.sources_E),   at(index.targets_E), at(index.back_offsets_S1),
            at(index.back_edges_E)};
  }

  Team* const team_;
};

}  // namespace

std::unique_ptr<GraphKernels> MakeGraphKernels(Team* team) {
  return std::make_unique<CpuGraphKernels>(team);
}

}  // namespace cpu
}  // namespace pipelab
