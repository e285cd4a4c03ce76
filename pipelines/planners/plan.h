// What a planner answers: which operators make which stage, on how many devices, and how good that
// is.
//
//   PIPELAB_ASSIGN_OR_RETURN(Plan plan, MakePlan("piper", problem, {}));   // planners.h
//   std::string text = PlanToJson(plan, problem);                          // plan_json.h
//   PIPELAB_RETURN_IF_ERROR(CheckPlan(problem, plan).status());            // check_plan.h
#ifndef PIPELAB_PIPELINES_PLANNERS_PLAN_H_
#define PIPELAB_PIPELINES_PLANNERS_PLAN_H_

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "pipelines/planners/plan_problem.h"

namespace pipelab {

enum class PlanState : uint8_t {
  kOptimal,     // proven: no plan of the planner's kind has a smaller objective
  kFeasible,    // a plan, and a lower bound
  kInfeasible,  // proven: there is none (for a heuristic: it found none)
  kTimeLimit,   // the search was stopped: the best plan so far, if any, and a lower bound
};
const char* PlanStateName(PlanState state);  // "optimal"
absl::StatusOr<PlanState> FindPlanState(absl::string_view name);

struct PlanStage {
  std::vector<int> layers;    // operators of the problem, ascending
  std::vector<int> variants;  // of each: index into its variants of degree `tensor`
  int64_t data = 1;           // copies that share the micro-batches
  int tensor = 1;
  // PipeDream: copies on each network level, from the innermost; their product is `data`.
  std::vector<int64_t> data_of_level;
  bool on_processor = false;  // max-load: not on an accelerator
  // Samples of the stage's micro-batch, which its copies share, and how many of these micro-batches
  // are in flight; 0 where the planner has no notion of them.
  int64_t micro_batch_size = 0, in_flight = 0;

  // Its devices are those from here on; -1: those after the stage before.
  int64_t first_device = -1;

  int64_t devices() const { return data * tensor; }
};

// One micro-batch of TeraPipe's.
struct PlanSlices {
  int64_t micro_batch_size = 0;
  std::vector<int64_t> tokens;  // of each slice of every sample, in order
};

struct Plan {
  std::string planner;
  PlanState state = PlanState::kInfeasible;
  PlanObjective objective = PlanObjective::kStageTime;
  double value = 0;                // of the objective; in the problem's time unit
  double lower_bound = 0;          // no plan of the planner's kind is below
  std::string bound_reason;        // what makes it a bound; empty: not said
  std::vector<PlanStage> stages;   // in an order in which every edge goes on; empty: no plan
  double peak_bytes = 0;           // of the fullest device
  std::vector<PlanSlices> slices;  // of a batch; empty: micro-batches go through whole
  int kfkb = 1;                    // k of the kFkB that its stages run
  absl::Duration search_time;

  bool has_plan() const { return !stages.empty(); }
};

// Stages that a stage feeds, each once, sorted.
std::vector<std::pair<int, int>> StageEdges(const PlanProblem& problem, const Plan& plan);

// "s/microbatch"; of a variance its square.
std::string ObjectiveUnit(const PlanProblem& problem, PlanObjective objective);

}  // namespace pipelab

#endif  // PIPELAB_PIPELINES_PLANNERS_PLAN_H_
