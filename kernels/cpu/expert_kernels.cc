#include <algorithm>
#include <memory>

#include "kernels/cpu/elementwise.h"
#include "kernels/cpu/experts.h"
#include "kernels/cpu/groups.h"
#include "kernels/cpu/rows.h"
#include "kernels/shape_checks.h"

namespace pipelab {
namespace cpu {
namespace {

// f(token, row) for every choice that has a row, in order.
template <class F>
void ForEachPlace(const Routing& routing, int64_t tokens, const F& f) {
  const auto places = routing.places_MK.i32();
  const int64_t choices = routing.places_MK.size() / tokens;
  for (int64_t i = 0; i < routing.places_MK.size(); ++i) {
    if (places[i] != kDropped) f(i / choices, places[i]);
  }
}

// f(expert, first row, rows) for every expert that has some.
template <class F>
void ForEachExpert(const Routing& routing, const F& f) {
  const auto begins = routing.begins_G1.i32();
  for (int64_t g = 0; g + 1 < routing.begins_G1.size(); ++g) {
    if (begins[g + 1] > begins[g]) f(g, int64_t{begins[g]}, int64_t{begins[g + 1]} - begins[g]);
  }
}

class CpuExpertKernels final : public ExpertKernels {
 public:
  explicit CpuExpertKernels(Sgemm* gemm) : gemm_(gemm) {}

  void DoRoute(const RouterShape& shape, const Tensor& logits_ME, const Routing& r) override {
    int32_t* const experts = r.experts_MK.i32().data();
    ChooseExperts(shape, Data(logits_ME), Data(r.weights_MK), experts);
    PlaceChoices(shape, experts, r.places_MK.i32().data(), r.begins_G1.i32().data());
  }
  void DoRouteGradient(const RouterShape& shape, const Tensor& dweights_MK, const Tensor& logits_ME,
                       const Routing& r, float balance, const Tensor& dlogits_ME) override {
    RouterBackward(shape, Data(dweights_MK), Data(logits_ME), r.experts_MK.i32().data(), balance,
                   Data(dlogits_ME));
  }

  void DoGather(const Routing& r, const Tensor& x_MC, const Tensor& all_RC) override {
    const auto [m, c] = RowsOf(x_MC);
    ForEachPlace(r, m, [&, c = c](int64_t token, int64_t row) {
      std::copy_n(Data(x_MC) + token * c, c, Data(all_RC) + row * c);
    });
  }
  void DoSumOfChoices(const Routing& r, const Tensor& all_RC, const Tensor& y_MC) override {
    const auto [m, c] = RowsOf(y_MC);
    std::fill_n(Data(y_MC), m * c, 0.0f);
    ForEachPlace(r, m, [&, c = c](int64_t token, int64_t row) {
      float* const y = Data(y_MC) + token * c;
      AddVectors(y, Data(all_RC) + row * c, c, y);
    });
  }

  void DoWeigh(const Routing& r, const Tensor& x_RF) override {
    const auto [rows, f] = RowsOf(x_RF);
    const auto weights = r.weights_MK.f32();
    ForEachPlace(r, rows, [&, f = f](int64_t choice, int64_t row) {
      ScaleRows(&weights[choice], 1, f, f, Data(x_RF) + row * f);
    });
  }
  void DoWeighGradient(const Routing& r, const Tensor& x_RF, const Tensor& dy_RF,
                       const Tensor& dweights_MK) override {
    const auto [rows, f] = RowsOf(x_RF);
    const auto weights = r.weights_MK.f32(), dweights = dweights_MK.f32();
    std::fill(dweights.begin(), dweights.end(), 0.0f);
    ForEachPlace(r, rows, [&, f = f](int64_t choice, int64_t row) {
      float* const dy = Data(dy_RF) + row * f;
      dweights[choice] = DotOfVectors(dy, Data(x_RF) + row * f, f);
      ScaleRows(&weights[choice], 1, f, f, dy);
    });
  }

  void DoProduct(const Routing& r, const Tensor& x_RK, const Tensor& w_GKN,
                 const Tensor& y_RN) override {
    const int64_t k = RowsOf(x_RK).columns, n = RowsOf(y_RN).columns;
    ForEachExpert(r, [&](int64_t g, int64_t begin, int64_t rows) {
      gemm_->Run(kPlain, kPlain, rows, n, k, 1, Data(x_RK) + begin * k, k, Data(w_GKN) + g * k * n,
                 n, 0, Data(y_RN) + begin * n, n);
    });
  }
  void DoProductInputGradient(const Routing& r, const Tensor& dy_RN, const Tensor& w_GKN,
                              const Tensor& dx_RK) override {
    const int64_t k = RowsOf(dx_RK).columns, n = RowsOf(dy_RN).columns;
    ForEachExpert(r, [&](int64_t g, int64_t begin, int64_t rows) {
      gemm_->Run(kPlain, kTransposed, rows, k, n, 1, Data(dy_RN) + begin * n, n,
                 Data(w_GKN) + g * k * n, n, 0, Data(dx_RK) + begin * k, k);
    });
  }
  void DoProductWeightGradient(const Routing& r, const Tensor& x_RK, const Tensor& dy_RN,
                               const Tensor& dw_GKN) override {
    const int64_t k = RowsOf(x_RK).columns, n = RowsOf(dy_RN).columns;
    ForEachExpert(r, [&](int64_t g, int64_t begin, int64_t rows) {
      gemm_->Run(kTransposed, kPlain, k, n, rows, 1, Data(x_RK) + begin * k, k,
                 Data(dy_RN) + begin * n, n, 1, Data(dw_GKN) + g * k * n, n);
    });
  }

 private:
  Sgemm* const gemm_;
};

}  // namespace

std::unique_ptr<ExpertKernels> MakeExpertKernels(Sgemm* gemm) {
  return std::make_unique<CpuExpertKernels>(gemm);
}

}  // namespace cpu
}  // namespace pipelab
