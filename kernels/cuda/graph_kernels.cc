#include <memory>

#include "kernels/cuda/functions.h"
#include "kernels/cuda/groups.h"
#include "kernels/shape_checks.h"

namespace pipelab {
namespace gpu {
namespace {

int64_t Columns(const Tensor& x) { return RowsOf(x).columns; }
bool IsMean(AggregateMode mode) { return mode == AggregateMode::kMean; }
bool HasSelf(AggregateMode mode) { return mode == AggregateMode::kSelfAndSum; }

class CudaGraphKernels final : public GraphKernels {
 public:
  explicit CudaGraphKernels(Device* device) : device_(device) {}

  void DoGather(const Tensor& ids_M, const Tensor& x_VC, const Tensor& y_MC) override {
    ByType(x_VC, [&](auto at) {
      GatherRows(*device_, Ids(ids_M), at(x_VC), RowsOf(x_VC).rows, ids_M.size(), Columns(y_MC),
                 at(y_MC));
    });
  }
  void DoDropRows(const Tensor& ids_M, const DropoutMask& mask, const Tensor& x_MC,
                  const Tensor& y_MC) override {
    const DropoutNumbers numbers{mask.rng.seed(), mask.rng.stream(), mask.offset, mask.rate};
    ByType(x_MC, [&](auto at) {
      gpu::DropRows(*device_, Ids(ids_M), numbers, at(x_MC), ids_M.size(), Columns(x_MC), at(y_MC));
    });
  }
  void DoAggregate(const GraphIndex& index, AggregateMode mode, const Tensor& x_SC,
                   const Tensor& y_TC) override {
    ByType(x_SC, [&](auto at) {
      gpu::Aggregate(*device_, EdgesOf(index), IsMean(mode), HasSelf(mode), Columns(x_SC), at(x_SC),
                     at(y_TC));
    });
  }
  void DoAggregateGradient(const GraphIndex& index, AggregateMode mode, const Tensor& dy_TC,
                           const Tensor& dx_SC) override {
    ByType(dy_TC, [&](auto at) {
      gpu::AggregateGradient(*device_, EdgesOf(index), IsMean(mode), HasSelf(mode), Columns(dx_SC),
                             at(dy_TC), at(dx_SC));
    });
  }
  void DoHeadProducts(const Tensor& x_MC, const Tensor& w_C, const Tensor& y_MH) override {
    gpu::HeadProducts(*device_, RowsOf(x_MC).rows, Columns(x_MC), Columns(y_MH), Data(x_MC),
                      Data(w_C), Data(y_MH));
  }
  void DoHeadProductsInputGradient(const Tensor& dy_MH, const Tensor& w_C,
                                   const Tensor& dx_MC) override {
    gpu::HeadProductsInputGradient(*device_, RowsOf(dx_MC).rows, Columns(dx_MC), Columns(dy_MH),
                                   Data(dy_MH), Data(w_C), Data(dx_MC));
  }
  void DoHeadProductsWeightGradient(const Tensor& x_MC, const Tensor& dy_MH,
                                    const Tensor& dw_C) override {
    gpu::HeadProductsWeightGradient(*device_, RowsOf(x_MC).rows, Columns(x_MC), Columns(dy_MH),
                                    Data(x_MC), Data(dy_MH), Data(dw_C));
  }
  void DoEdgeSoftmax(const GraphIndex& index, float slope, const Tensor& source_SH,
                     const Tensor& target_TH, const Tensor& a_EH) override {
    gpu::EdgeSoftmax(*device_, EdgesOf(index), slope, Columns(a_EH), Data(source_SH),
                     Data(target_TH), Data(a_EH));
  }
  void DoEdgeSoftmaxGradient(const GraphIndex& index, float slope, const Tensor& source_SH,
                             const Tensor& target_TH, const Tensor& a_EH, const Tensor& da_EH,
                             const Tensor& dsource_SH, const Tensor& dtarget_TH) override {
    gpu::EdgeSoftmaxGradient(*device_, EdgesOf(index), slope, Columns(a_EH), Data(source_SH),
                             Data(target_TH), Data(a_EH), Data(da_EH), Data(dsource_SH),
                             Data(dtarget_TH));
  }
  void DoWeighed(const GraphIndex& index, const Tensor& a_EH, const Tensor& x_SC,
                 const Tensor& y_TC) override {
    gpu::Weighed(*device_, EdgesOf(index), Columns(x_SC), Columns(a_EH), Data(a_EH), Data(x_SC),
                 Data(y_TC));
  }
  void DoWeighedGradient(const GraphIndex& index, const Tensor& a_EH, const Tensor& x_SC,
                         const Tensor& dy_TC, const Tensor& da_EH, const Tensor& dx_SC) override {
    gpu::WeighedGradient(*device_, EdgesOf(index), index.num_edges, Columns(x_SC), Columns(a_EH),
                         Data(a_EH), Data(x_SC), Data(dy_TC), Data(da_EH), Data(dx_SC));
  }

 private:
  static EdgePlaces EdgesOf(const GraphIndex& index) {
    return {index.num_sources,      index.num_targets,    Ids(index.offsets_T1),
            Ids(index.sources_E),   Ids(index.targets_E), Ids(index.back_offsets_S1),
            Ids(index.back_edges_E)};
  }

  Device* const device_;
};

}  // namespace

std::unique_ptr<GraphKernels> MakeGraphKernels(Device* device) {
  return std::make_unique<CudaGraphKernels>(device);
}

}  // namespace gpu
}  // namespace pipelab
