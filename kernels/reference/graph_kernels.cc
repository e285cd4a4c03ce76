#include <algorithm>
#include <memory>

#include "kernels/reference/functions.h"
#include "kernels/reference/groups.h"
#include "kernels/reference/wide.h"
#include "kernels/shape_checks.h"

namespace pipelab {
namespace reference {
namespace {

int64_t Columns(const Tensor& x) { return RowsOf(x).columns; }

class ReferenceGraphKernels final : public GraphKernels {
 public:
  void DoGather(const Tensor& ids_M, const Tensor& x_VC, const Tensor& y_MC) override {
    const int64_t c = Columns(y_MC);
    for (int64_t i = 0; i < ids_M.size(); ++i) {
      std::copy_n(&x_VC.f32()[ids_M.i32()[i] * c], c, &y_MC.f32()[i * c]);
    }
  }
  void DoDropRows(const Tensor& ids_M, const DropoutMask& mask, const Tensor& x_MC,
                  const Tensor& y_MC) override {
    reference::DropRows(ids_M.i32(), mask, Columns(x_MC), Wide(x_MC), WideResult(y_MC));
  }
  void DoAggregate(const GraphIndex& index, AggregateMode mode, const Tensor& x_SC,
                   const Tensor& y_TC) override {
    reference::Aggregate(EdgesOf(index), mode, Columns(x_SC), Wide(x_SC), WideResult(y_TC));
  }
  void DoAggregateGradient(const GraphIndex& index, AggregateMode mode, const Tensor& dy_TC,
                           const Tensor& dx_SC) override {
    reference::AggregateGradient(EdgesOf(index), mode, Columns(dx_SC), Wide(dy_TC),
                                 WideResult(dx_SC));
  }
  void DoHeadProducts(const Tensor& x_MC, const Tensor& w_C, const Tensor& y_MH) override {
    reference::HeadProducts(Columns(x_MC), Columns(y_MH), Wide(x_MC), Wide(w_C), WideResult(y_MH));
  }
  void DoHeadProductsInputGradient(const Tensor& dy_MH, const Tensor& w_C,
                                   const Tensor& dx_MC) override {
    reference::HeadProductsInputGradient(Columns(dx_MC), Columns(dy_MH), Wide(dy_MH), Wide(w_C),
                                         WideResult(dx_MC));
  }
  void DoHeadProductsWeightGradient(const Tensor& x_MC, const Tensor& dy_MH,
                                    const Tensor& dw_C) override {
    reference::HeadProductsWeightGradient(Columns(x_MC), Columns(dy_MH), Wide(x_MC), Wide(dy_MH),
                                          WideResult(dw_C));
  }
  void DoEdgeSoftmax(const GraphIndex& index, float slope, const Tensor& source_SH,
                     const Tensor& target_TH, const Tensor& a_EH) override {
    reference::EdgeSoftmax(EdgesOf(index), slope, Columns(a_EH), Wide(source_SH), Wide(target_TH),
                           WideResult(a_EH));
  }
  void DoEdgeSoftmaxGradient(const GraphIndex& index, float slope, const Tensor& source_SH,
                             const Tensor& target_TH, const Tensor& a_EH, const Tensor& da_EH,
                             const Tensor& dsource_SH, const Tensor& dtarget_TH) override {
    reference::EdgeSoftmaxGradient(EdgesOf(index), slope, Columns(a_EH), Wide(source_SH),
                                   Wide(target_TH), Wide(a_EH), WideResult(da_EH),
                                   WideResult(dsource_SH), WideResult(dtarget_TH));
  }
  void DoWeighed(const GraphIndex& index, const Tensor& a_EH, const Tensor& x_SC,
                 const Tensor& y_TC) override {
    reference::Weighed(EdgesOf(index), Columns(x_SC), Columns(a_EH), Wide(a_EH), Wide(x_SC),
                       WideResult(y_TC));
  }
  void DoWeighedGradient(const GraphIndex& index, const Tensor& a_EH, const Tensor& x_SC,
                         const Tensor& dy_TC, const Tensor& da_EH, const Tensor& dx_SC) override {
    reference::WeighedGradient(EdgesOf(index), Columns(x_SC), Columns(a_EH), Wide(a_EH), Wide(x_SC),
                               Wide(dy_TC), WideResult(da_EH), WideResult(dx_SC));
  }

 private:
  static GraphEdges EdgesOf(const GraphIndex& index) {
    return {index.offsets_T1.i32(), index.sources_E.i32()};
  }
};

}  // namespace

std::unique_ptr<GraphKernels> MakeGraphKernels() {
  return std::make_unique<ReferenceGraphKernels>();
}

}  // namespace reference
}  // namespace pipelab
