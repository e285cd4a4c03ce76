#include "glog/logging.h"
#include "kernels/expert_kernels.h"
#include "kernels/shape_checks.h"

namespace pipelab {

void CheckRoute(const char* kernel, const RouterShape& s, const Tensor& logits_ME,
                const Routing& routing) {
  const RowsSize logits = RowsOf(logits_ME);
  CHECK(logits.rows == s.rows() && logits.columns == s.experts)
      << kernel << ": logits " << ShapeToString(logits_ME.shape()) << " of " << s.rows()
      << " tokens and " << s.experts << " experts";
  CHECK(0 < s.chosen && s.chosen <= s.experts && s.shared >= 0 && s.capacity >= 0)
      << kernel << ": " << s.chosen << " of " << s.experts << " experts";
  CHECK(s.nodes == 0 ||
        (0 < s.nodes && s.nodes <= 64 && s.experts % s.nodes == 0 && 0 < s.most_nodes &&
         s.most_nodes <= s.nodes && s.chosen <= s.most_nodes * s.experts_of_node()))
      << kernel << ": " << s.chosen << " experts of " << s.most_nodes << " of " << s.nodes
      << " nodes";
  CHECK_EQ(routing.weights_MK.size(), s.rows() * s.choices()) << kernel << ": weights";
  CheckSameSize(kernel, {&routing.weights_MK, &routing.experts_MK, &routing.places_MK});
  CHECK_EQ(routing.begins_G1.size(), s.groups() + 1) << kernel << ": first rows";
}

void CheckChoices(const char* kernel, const Routing& routing, const Tensor& x_MC,
                  const Tensor& all_RC) {
  const RowsSize x = RowsOf(x_MC), all = RowsOf(all_RC);
  CHECK(all.rows == routing.places_MK.size() && x.columns == all.columns && x.rows > 0 &&
        all.rows % x.rows == 0)
      << kernel << ": " << ShapeToString(x_MC.shape()) << " beside "
      << ShapeToString(all_RC.shape()) << " for " << routing.places_MK.size() << " choices";
}

void CheckExperts(const char* kernel, const Routing& routing, const Tensor& x_RK,
                  const Tensor& w_GKN, const Tensor& y_RN) {
  const RowsSize x = RowsOf(x_RK), y = RowsOf(y_RN);
  CHECK(w_GKN.shape().size() == 3 && x.rows == routing.places_MK.size() && y.rows == x.rows &&
        w_GKN.dim(0) + 1 == routing.begins_G1.size() && w_GKN.dim(1) == x.columns &&
        w_GKN.dim(2) == y.columns)
      << kernel << ": " << ShapeToString(x_RK.shape()) << " by " << ShapeToString(w_GKN.shape())
      << " for " << ShapeToString(y_RN.shape());
}

void CheckWeights(const char* kernel, const Routing& routing, const Tensor& x_RF,
                  const Tensor& dy_RF, const Tensor& dweights_MK) {
  CheckSameSize(kernel, {&routing.weights_MK, &dweights_MK});
  if (x_RF.empty()) return;
  CheckSameSize(kernel, {&x_RF, &dy_RF});
  CHECK_EQ(RowsOf(x_RF).rows, routing.places_MK.size()) << kernel << ": one row per choice";
}

}  // namespace pipelab
