// What makes a plan one, whatever it is worth. Part of CheckPlan (check_plan.h).
#ifndef PIPELAB_PIPELINES_CHECKER_CHECK_RULES_H_
#define PIPELAB_PIPELINES_CHECKER_CHECK_RULES_H_

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "pipelines/checker/check_view.h"

namespace pipelab {

struct PlanNeeds {
  int64_t devices = 0;              // used
  std::vector<double> stage_bytes;  // of one of a stage's devices
};

// InvalidArgument naming the stage: one that is not convex or listed before what it needs, a cycle,
// more devices, processors or copies than there are, copies that do not divide their micro-batches,
// memory.
absl::StatusOr<PlanNeeds> CheckRules(const PlanView& view);

}  // namespace pipelab

#endif  // PIPELAB_PIPELINES_CHECKER_CHECK_RULES_H_
