// Feed-forwards of which each token takes a few: a mixture of experts, in parts.
//
//   ExpertKernels& experts = backend->experts();
//   experts.Route(shape, logits_ME, routing);            // which ones, and their weights
//   experts.Gather(routing, x_MC, x_RC);                 // tokens, expert by expert
//   experts.Product(routing, x_RC, w_GCF, h_RF);         // each expert's rows by its weights
//   experts.Weigh(routing, h_RF);
//   experts.SumOfChoices(routing, y_RC, y_MC);           // and back
//
// M tokens with K choices each have R = M K rows: those of expert 0 first, each expert's in the
// order of tokens. What a capacity drops has no row, and as many rows at the end are neither read
// nor written, so tensors have R rows whatever the tokens choose. Sums over choices and over rows
// are in one order. The weights apply before an expert's second product, which is linear; so their
// gradient needs no expert's output.
//
// Papers: Shazeer et al., ICLR 2017; Lepikhin et al. (GShard), ICLR 2021; Fedus et al. (Switch),
// JMLR 2022; Gale et al. (MegaBlocks), MLSys 2023, for no drops; DeepSeek-V3, arXiv 2412.19437.
#ifndef PIPELAB_KERNELS_EXPERT_KERNELS_H_
#define PIPELAB_KERNELS_EXPERT_KERNELS_H_

#include <cstdint>

#include "kernels/router_shape.h"  // IWYU pragma: export
#include "kernels/tensor/tensor.h"

namespace pipelab {

// Where the tokens of a call go.
struct Routing {
  Tensor weights_MK;  // float32; of a dropped choice too
  Tensor experts_MK;  // int32, as the others
  Tensor places_MK;   // the row of each choice, or kDropped
  Tensor begins_G1;   // each expert's first row; the last number is how many rows there are
};
inline constexpr int32_t kDropped = -1;

// Sizes that fit, or CHECK, naming the kernel.
void CheckRoute(const char* kernel, const RouterShape& shape, const Tensor& logits_ME,
                const Routing& routing);
// all_RC has a row for each choice of the tokens of x_MC.
void CheckChoices(const char* kernel, const Routing& routing, const Tensor& x_MC,
                  const Tensor& all_RC);
void CheckExperts(const char* kernel, const Routing& routing, const Tensor& x_RK,
                  const Tensor& w_GKN, const Tensor& y_RN);
void CheckWeights(const char* kernel, const Routing& routing, const Tensor& x_RF,
                  const Tensor& dy_RF, const Tensor& dweights_MK);

class ExpertKernels {
 public:
  virtual ~ExpertKernels() = default;

  void Route(const RouterShape& shape, const Tensor& logits_ME, const Routing& routing) {
    CheckRoute("Route", shape, logits_ME, routing);
    DoRoute(shape, logits_ME, routing);
  }
  // The gradient by way of the weights, and that of a balancing loss for each sample:
  // balance * sum over tokens and experts of f_e s_te. s_te is the expert's share of the token's
  // scores, and f_e the sample's choices of it over what it would have of an even spread, which has
  // no gradient (DeepSeek-V3, equations 17 to 20). dlogits may be logits.
  void RouteGradient(const RouterShape& shape, const Tensor& dweights_MK, const Tensor& logits_ME,
                     const Routing& routing, float balance, const Tensor& dlogits_ME) {
    CheckRoute("RouteGradient", shape, logits_ME, routing);
    CheckRoute("RouteGradient", shape, dlogits_ME, routing);
    CheckWeights("RouteGradient", routing, Tensor(), Tensor(), dweights_MK);
    DoRouteGradient(shape, dweights_MK, logits_ME, routing, balance, dlogits_ME);
  }

  // all[place of each choice] = x[its token]; the gradient of SumOfChoices.
  void Gather(const Routing& routing, const Tensor& x_MC, const Tensor& all_RC) {
    CheckChoices("Gather", routing, x_MC, all_RC);
    DoGather(routing, x_MC, all_RC);
  }
  // y[token] = the sum of its choices' rows; the gradient of Gather.
  void SumOfChoices(const Routing& routing, const Tensor& all_RC, const Tensor& y_MC) {
    CheckChoices("SumOfChoices", routing, y_MC, all_RC);
    DoSumOfChoices(routing, all_RC, y_MC);
  }

  // Each row times the weight of its choice, in place.
  void Weigh(const Routing& routing, const Tensor& x_RF) {
    CheckWeights("Weigh", routing, x_RF, x_RF, routing.weights_MK);
    DoWeigh(routing, x_RF);
  }
  // x is what was weighed; dy becomes dx in place.
  void WeighGradient(const Routing& routing, const Tensor& x_RF, const Tensor& dy_RF,
                     const Tensor& dweights_MK) {
    CheckWeights("WeighGradient", routing, x_RF, dy_RF, dweights_MK);
    DoWeighGradient(routing, x_RF, dy_RF, dweights_MK);
  }

  // y = x w, of each expert's rows by its own weights; dx = dy w^T; dw += x^T dy.
  void Product(const Routing& routing, const Tensor& x_RK, const Tensor& w_GKN,
               const Tensor& y_RN) {
    CheckExperts("Product", routing, x_RK, w_GKN, y_RN);
    DoProduct(routing, x_RK, w_GKN, y_RN);
  }
  void ProductInputGradient(const Routing& routing, const Tensor& dy_RN, const Tensor& w_GKN,
                            const Tensor& dx_RK) {
    CheckExperts("ProductInputGradient", routing, dx_RK, w_GKN, dy_RN);
    DoProductInputGradient(routing, dy_RN, w_GKN, dx_RK);
  }
  void ProductWeightGradient(const Routing& routing, const Tensor& x_RK, const Tensor& dy_RN,
                             const Tensor& dw_GKN) {
    CheckExperts("ProductWeightGradient", routing, x_RK, dw_GKN, dy_RN);
    DoProductWeightGradient(routing, x_RK, dy_RN, dw_GKN);
  }

 private:
  // What a backend does, once the shapes are checked.
  virtual void DoRoute(const RouterShape& shape, const Tensor& logits_ME,
                       const Routing& routing) = 0;
  virtual void DoRouteGradient(const RouterShape& shape, const Tensor& dweights_MK,
                               const Tensor& logits_ME, const Routing& routing, float balance,
                               const Tensor& dlogits_ME) = 0;
  virtual void DoGather(const Routing& routing, const Tensor& x_MC, const Tensor& all_RC) = 0;
  virtual void DoSumOfChoices(const Routing& routing, const Tensor& all_RC, const Tensor& y_MC) = 0;
  virtual void DoWeigh(const Routing& routing, const Tensor& x_RF) = 0;
  virtual void DoWeighGradient(const Routing& routing, const Tensor& x_RF, const Tensor& dy_RF,
                               const Tensor& dweights_MK) = 0;
  virtual void DoProduct(const Routing& routing, const Tensor& x_RK, const Tensor& w_GKN,
                         const Tensor& y_RN) = 0;
  virtual void DoProductInputGradient(const Routing& routing, const Tensor& dy_RN,
                                      const Tensor& w_GKN, const Tensor& dx_RK) = 0;
  virtual void DoProductWeightGradient(const Routing& routing, const Tensor& x_RK,
                                       const Tensor& dy_RN, const Tensor& dw_GKN) = 0;
};

}  // namespace pipelab

#endif  // PIPELAB_KERNELS_EXPERT_KERNELS_H_
