// The problem that the flags of `plan` and `check_plan` name: an input, and the machine if it
// differs from the input's.
//
//   PIPELAB_ASSIGN_OR_RETURN(PlanProblem problem, PlanProblemFromFlags());
#ifndef PIPELAB_EXPERIMENTS_COMMANDS_PLAN_PROBLEM_FLAGS_H_
#define PIPELAB_EXPERIMENTS_COMMANDS_PLAN_PROBLEM_FLAGS_H_

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "pipelines/planners/plan_problem.h"

namespace pipelab {

// InvalidArgument naming the option for what the user asked, FailedPrecondition for what is wrong
// in a file.
absl::StatusOr<PlanProblem> PlanProblemFromFlags();

}  // namespace pipelab

#endif  // PIPELAB_EXPERIMENTS_COMMANDS_PLAN_PROBLEM_FLAGS_H_
