// A plan as its checker reads it, with no code of the planners: which stage and variant each layer
// has, and what follows for a stage from the problem's figures. Part of CheckPlan (check_plan.h).
#ifndef PIPELAB_PIPELINES_CHECKER_CHECK_VIEW_H_
#define PIPELAB_PIPELINES_CHECKER_CHECK_VIEW_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "pipelines/planners/plan.h"
#include "pipelines/planners/plan_problem.h"

namespace pipelab {

inline constexpr double kSumTolerance = 1e-9;  // relative, of sums of doubles in another order

template <typename... Parts>
absl::Status PlanError(const Parts&... parts) {
  return absl::InvalidArgumentError(absl::StrCat(parts...));
}

struct PlanView {
  // InvalidArgument naming the stage and layer where one is left out, twice there, run in a variant
  // that it does not have, or parted from what shares its device. Both must outlive the view.
  static absl::StatusOr<PlanView> Make(const PlanProblem& problem, const Plan& plan);

  const PlanProblem& problem;
  const Plan& plan;
  std::vector<int> stage_of;                // [layer]
  std::vector<const PlanVariant*> variant;  // [layer]

  int num_stages() const { return static_cast<int>(plan.stages.size()); }
  const std::string& Id(int v) const { return problem.operators[v].id; }
  // Whether the edge orders stages: a training graph's backward runs in its own, opposite order.
  bool Orders(const PlanEdge& edge) const {
    return !problem.operators[edge.from].is_backward && !problem.operators[edge.to].is_backward;
  }
  // Samples of the stage's micro-batch, over its copies.
  int64_t Samples(int s) const;
  // What one copy has of it, in micro-batches of the problem.
  double PartOfCopy(int s) const;
  // The time of a micro-batch of the problem on one device.
  double Compute(int s) const;
  double Parameters(int s) const;  // bytes
};

}  // namespace pipelab

#endif  // PIPELAB_PIPELINES_CHECKER_CHECK_VIEW_H_
