// The planners that have a name.
//
//   PIPELAB_ASSIGN_OR_RETURN(Plan plan, MakePlan("piper", problem, {absl::Seconds(10)}));
//   for (const Planner& p : Planners()) std::cout << p.name << ": " << p.summary;
//
// A planner is a function from a problem (FinishProblem has been called) to a plan, in a file of
// its own, and a line in planners.cc. It does not print and reads no flags. It answers with an
// infeasible plan where there is none, and with InvalidArgument where the problem is not of its
// kind (a planner of the max-load objective needs transfer times).
#ifndef PIPELAB_PIPELINES_PLANNERS_PLANNERS_H_
#define PIPELAB_PIPELINES_PLANNERS_PLANNERS_H_

#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "pipelines/planners/plan.h"
#include "pipelines/planners/plan_problem.h"

namespace pipelab {

struct PlannerOptions {
  absl::Duration time_limit = absl::InfiniteDuration();
  // For planners that are told how many stages to make (uniform, gpipe, chain, terapipe). 0: as
  // many as devices, or as operators where these are fewer.
  int stages = 0;
  // For planners that choose the micro-batches of stages (graphpipe): samples of every stage's
  // micro-batch, over its copies. 0: each stage has any of PlanProblem::micro_batch_sizes.
  int64_t micro_batch_size = 0;
  // For piper: only plans with a smaller objective are of use; where there are none, this is the
  // bound of an infeasible plan.
  double known_value = std::numeric_limits<double>::infinity();
  // For graphpipe: each of its searches ends after at most so many steps, which are the same on
  // every machine.
  int64_t most_steps = std::numeric_limits<int64_t>::max();
};

struct Planner {
  absl::string_view name, summary;
  absl::StatusOr<Plan> (*plan)(const PlanProblem& problem, const PlannerOptions& options);
  bool mixed_speeds = false;      // whether it plans for PlanProblem::device_speeds
  bool stages = false;            // whether it takes PlannerOptions::stages
  bool micro_batch_size = false;  // and PlannerOptions::micro_batch_size
};

absl::Span<const Planner> Planners();

// InvalidArgument, "--planner=NAME: ..." for a name that is not there or takes no such option.
// Fills in `planner`, `search_time` and `peak_bytes`.
absl::StatusOr<Plan> MakePlan(absl::string_view name, const PlanProblem& problem,
                              const PlannerOptions& options);

// The stages that a planner is to make of so many groups of layers. InvalidArgument,
// "--stages=...", for more than there are groups or devices.
absl::StatusOr<int> NumStages(const PlanProblem& problem, const PlannerOptions& options,
                              int num_groups);

// One a file.
absl::StatusOr<Plan> ChainPlan(const PlanProblem& problem, const PlannerOptions& options);
absl::StatusOr<Plan> GpipePlan(const PlanProblem& problem, const PlannerOptions& options);
absl::StatusOr<Plan> MaxLoadPlan(const PlanProblem& problem, const PlannerOptions& options);
absl::StatusOr<Plan> PipeDreamPlan(const PlanProblem& problem, const PlannerOptions& options);
absl::StatusOr<Plan> PiperPlan(const PlanProblem& problem, const PlannerOptions& options);
absl::StatusOr<Plan> TeraPipePlan(const PlanProblem& problem, const PlannerOptions& options);
absl::StatusOr<Plan> UniformPlan(const PlanProblem& problem, const PlannerOptions& options);
absl::StatusOr<Plan> BaPipePlan(const PlanProblem& problem, const PlannerOptions& options);
absl::StatusOr<Plan> DapplePlan(const PlanProblem& problem, const PlannerOptions& options);
absl::StatusOr<Plan> GraphPipePlan(const PlanProblem& problem, const PlannerOptions& options);

}  // namespace pipelab

#endif  // PIPELAB_PIPELINES_PLANNERS_PLANNERS_H_
