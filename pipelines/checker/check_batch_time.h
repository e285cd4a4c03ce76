// The checker's own arithmetic for plans that say what a batch takes (planning.md, `batch_time`),
// with no code of the planners. Part of CheckPlan (check_plan.h).
#ifndef PIPELAB_PIPELINES_CHECKER_CHECK_BATCH_TIME_H_
#define PIPELAB_PIPELINES_CHECKER_CHECK_BATCH_TIME_H_

#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "pipelines/planners/plan.h"
#include "pipelines/planners/plan_problem.h"

namespace pipelab {

bool IsBatchTime(PlanObjective objective);

struct BatchTimeFigures {
  double value = 0;                 // of a batch
  double work_bound = 0;            // the work of all operators over all devices, of a batch
  std::vector<double> stage_times;  // of a micro-batch, both passes
};

// The plan's layers are covered and its stages in order. InvalidArgument, naming the stage, where
// devices are not there, or belong to an earlier stage.
absl::StatusOr<BatchTimeFigures> CheckBatchTime(const PlanProblem& problem, const Plan& plan);

// Micro-batches that a stage keeps: k for itself and each stage behind it, at most those of a
// batch.
int64_t BatchInFlight(const PlanProblem& problem, const Plan& plan, int stage);

}  // namespace pipelab

#endif  // PIPELAB_PIPELINES_CHECKER_CHECK_BATCH_TIME_H_
