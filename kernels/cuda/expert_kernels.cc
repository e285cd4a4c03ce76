#include <memory>

#include "kernels/cuda/functions.h"
#include "kernels/cuda/groups.h"
#include "kernels/shape_checks.h"

namespace pipelab {
namespace gpu {
namespace {

class CudaExpertKernels final : public ExpertKernels {
 public:
  explicit CudaExpertKernels(Device* device) : device_(device) {}

  void DoRoute(const RouterShape& shape, const Tensor& logits_ME, const Routing& r) override {
    ByType(logits_ME, [&](auto at) {
      gpu::Route(*device_, shape, at(logits_ME), Data(r.weights_MK), DataOf<int32_t>(r.experts_MK),
                 DataOf<int32_t>(r.places_MK), DataOf<int32_t>(r.begins_G1));
    });
  }
  void DoRouteGradient(const RouterShape& shape, const Tensor& dweights_MK, const Tensor& logits_ME,
                       const Routing& r, float balance, const Tensor& dlogits_ME) override {
    ByType(logits_ME, [&](auto at) {
      gpu::RouteGradient(*device_, shape, Data(dweights_MK), at(logits_ME), Ids(r.experts_MK),
                         balance, at(dlogits_ME));
    });
  }
  void DoGather(const Routing& r, const Tensor& x_MC, const Tensor& all_RC) override {
    ByType(x_MC, [&](auto at) { GatherRows(*device_, RowsFor(r, x_MC), at(x_MC), at(all_RC)); });
  }
  void DoSumOfChoices(const Routing& r, const Tensor& all_RC, const Tensor& y_MC) override {
    ByType(y_MC,
           [&](auto at) { gpu::SumOfChoices(*device_, RowsFor(r, y_MC), at(all_RC), at(y_MC)); });
  }
  void DoWeigh(const Routing& r, const Tensor& x_RF) override {
    ByType(x_RF,
           [&](auto at) { gpu::Weigh(*device_, RowsFor(r, x_RF), Data(r.weights_MK), at(x_RF)); });
  }
  void DoWeighGradient(const Routing& r, const Tensor& x_RF, const Tensor& dy_RF,
                       const Tensor& dweights_MK) override {
    ByType(x_RF, [&](auto at) {
      gpu::WeighGradient(*device_, RowsFor(r, x_RF), Data(r.weights_MK), at(x_RF), at(dy_RF),
                         Data(dweights_MK));
    });
  }
  void DoProduct(const Routing& r, const Tensor& x_RK, const Tensor& w_GKN,
                 const Tensor& y_RN) override {
    ByType(x_RK, [&](auto at) {
      ExpertProduct(*device_, CallOf(r, x_RK, y_RN), at(x_RK), at(w_GKN), at(y_RN));
    });
  }
  void DoProductInputGradient(const Routing& r, const Tensor& dy_RN, const Tensor& w_GKN,
                              const Tensor& dx_RK) override {
    ByType(dy_RN, [&](auto at) {
      ExpertProductInputGradient(*device_, CallOf(r, dx_RK, dy_RN), at(dy_RN), at(w_GKN),
                                 at(dx_RK));
    });
  }
  void DoProductWeightGradient(const Routing& r, const Tensor& x_RK, const Tensor& dy_RN,
                               const Tensor& dw_GKN) override {
    ByType(x_RK, [&](auto at) {
      ExpertProductWeightGradient(*device_, CallOf(r, x_RK, dy_RN), at(x_RK), at(dy_RN),
                                  Data(dw_GKN));
    });
  }

 private:
  // For as many tokens as x has rows: with a row for each choice, those count as tokens of one.
  static ExpertRows RowsFor(const Routing& r, const Tensor& x) {
    const RowsSize size = RowsOf(x);
    return {Ids(r.places_MK), size.rows, r.places_MK.size() / size.rows, size.columns};
  }
  static ExpertProducts CallOf(const Routing& r, const Tensor& x_RK, const Tensor& y_RN) {
    const auto [m, k, n] = MatmulOf(x_RK, y_RN);
    return {Ids(r.begins_G1), r.begins_G1.size() - 1, m, k, n};
  }

  Device* const device_;
};

}  // namespace

std::unique_ptr<ExpertKernels> MakeExpertKernels(Device* device) {
  return std::make_unique<CudaExpertKernels>(device);
}

}  // namespace gpu
}  // namespace pipelab
