// The problem that the flags of `plan` and `check_plan` name: an input, and the machine if it
// differs from the input's.
//
//   PIPELAB_ASSIGN_OR_RETURN(PlanProblem problem, PlanProblemFromFlags());
#ifndef PIPELAB_EXPERIMENTS_COMMANDS_PLAN_PROBLEM_FLAGS_H_
#define PIPELAB_EXPERIMENTS_COMMANDS_PLAN_PROBLEM_FLAGS_H_

#include <memory>

#include "absl/status/statusor.h"
#include "pipelines/planners/plan_problem.h"
#include "pipelines/step/model_on_cluster.h"

namespace pipelab {

// InvalidArgument naming the option for what the user asked, FailedPrecondition for what is wrong
// in a file. `on` becomes the model and machine of --model, which is read once.
absl::StatusOr<PlanProblem> PlanProblemFromFlags(std::unique_ptr<ModelOnCluster>* on = nullptr);

}  // namespace pipelab

#endif  // PIPELAB_EXPERIMENTS_COMMANDS_PLAN_PROBLEM_FLAGS_H_
