#include <memory>

#include "kernels/reference/functions.h"
#include "kernels/reference/groups.h"
#include "kernels/reference/wide.h"
#include "kernels/shape_checks.h"

namespace pipelab {
namespace reference {
namespace {

int64_t ChoicesOf(const Routing& routing, const Tensor& x_MC) {
  return routing.places_MK.size() / RowsOf(x_MC).rows;
}

class ReferenceExpertKernels final : public ExpertKernels {
 public:
  void DoRoute(const RouterShape& shape, const Tensor& logits_ME, const Routing& r) override {
    reference::Route(shape, Wide(logits_ME), WideResult(r.weights_MK),
                     {r.experts_MK.i32(), r.places_MK.i32(), r.begins_G1.i32()});
  }
  void DoRouteGradient(const RouterShape& shape, const Tensor& dweights_MK, const Tensor& logits_ME,
                       const Routing& r, float balance, const Tensor& dlogits_ME) override {
    reference::RouteGradient(shape, Wide(dweights_MK), Wide(logits_ME), r.experts_MK.i32(),
                             double{balance}, WideResult(dlogits_ME));
  }
  void DoGather(const Routing& r, const Tensor& x_MC, const Tensor& all_RC) override {
    reference::Gather(r.places_MK.i32(), ChoicesOf(r, x_MC), RowsOf(x_MC).columns, Wide(x_MC),
                      WideResult(all_RC));
  }
  void DoSumOfChoices(const Routing& r, const Tensor& all_RC, const Tensor& y_MC) override {
    reference::SumOfChoices(r.places_MK.i32(), ChoicesOf(r, y_MC), RowsOf(y_MC).columns,
                            Wide(all_RC), WideResult(y_MC));
  }
  void DoWeigh(const Routing& r, const Tensor& x_RF) override {
    reference::Weigh(r.places_MK.i32(), RowsOf(x_RF).columns, Wide(r.weights_MK), WideResult(x_RF));
  }
  void DoWeighGradient(const Routing& r, const Tensor& x_RF, const Tensor& dy_RF,
                       const Tensor& dweights_MK) override {
    reference::WeighGradient(r.places_MK.i32(), RowsOf(x_RF).columns, Wide(r.weights_MK),
                             Wide(x_RF), WideResult(dy_RF), WideResult(dweights_MK));
  }
  void DoProduct(const Routing& r, const Tensor& x_RK, const Tensor& w_GKN,
                 const Tensor& y_RN) override {
    ExpertProduct(r.begins_G1.i32(), MatmulOf(x_RK, y_RN), Wide(x_RK), Wide(w_GKN),
                  WideResult(y_RN));
  }
  void DoProductInputGradient(const Routing& r, const Tensor& dy_RN, const Tensor& w_GKN,
                              const Tensor& dx_RK) override {
    ExpertProductInputGradient(r.begins_G1.i32(), MatmulOf(dx_RK, dy_RN), Wide(dy_RN), Wide(w_GKN),
                               WideResult(dx_RK));
  }
  void DoProductWeightGradient(const Routing& r, const Tensor& x_RK, const Tensor& dy_RN,
                               const Tensor& dw_GKN) override {
    ExpertProductWeightGradient(r.begins_G1.i32(), MatmulOf(x_RK, dy_RN), Wide(x_RK), Wide(dy_RN),
                                WideResult(dw_GKN));
  }
};

}  // namespace

std::unique_ptr<ExpertKernels> MakeExpertKernels() {
  return std::make_unique<ReferenceExpertKernels>();
}

}  // namespace reference
}  // namespace pipelab
