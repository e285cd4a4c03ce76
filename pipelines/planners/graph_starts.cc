#include "pipelines/planners/graph_starts.h"

#include <algorithm>
#include <cstdint>
#include <utility>

#include "absl/time/clock.h"
#include "pipelines/planners/plan_costs.h"
#include "pipelines/planners/planners.h"

namespace pipelab {
namespace {

constexpr absl::Duration kMostOfPlanner = absl::Seconds(10);
constexpr int64_t kMostCells = 100'000'000;  // operators times stages: a second

PlannerOptions Until(absl::Time deadline) {
  PlannerOptions options;
  options.time_limit =
      std::max(absl::ZeroDuration(), std::min(kMostOfPlanner, deadline - absl::Now()));
  return options;
}

PlanStages StagesOf(absl::StatusOr<Plan> plan) {
  if (!plan.ok()) return {};
  // In proportion to copies, whatever the planner's own micro-batches are.
  for (PlanStage& stage : plan->stages) stage.micro_batch_size = 0;
  return std::move(plan->stages);
}

}  // namespace

PlanProblem SequenceProblem(const PlanProblem& problem) {
  PlanProblem sequence = problem;
  sequence.objective = PlanObjective::kStageTime;
  sequence.bandwidth = FlatBandwidth(problem);
  return sequence;
}

std::vector<PlanStages> QuickStarts(const PlanProblem& sequence, absl::Time deadline) {
  std::vector<PlanStages> plans = {StagesOf(UniformPlan(sequence, {}))};
  // These planners fill tables without looking at the clock.
  const bool large = sequence.devices > kMostCells / std::max(sequence.size(), 1);
  if (large && deadline != absl::InfiniteFuture()) return plans;
  for (const auto planner : {&GpipePlan, &ChainPlan, &DapplePlan}) {
    if (absl::Now() < deadline) plans.push_back(StagesOf(planner(sequence, Until(deadline))));
  }
  return plans;
}

PiperStart StartOfPiper(const PlanProblem& sequence, double known, absl::Time deadline) {
  if (absl::Now() > deadline) return {};
  PlannerOptions options = Until(deadline);
  options.known_value = known;
  absl::StatusOr<Plan> plan = PiperPlan(sequence, options);
  PiperStart start;
  start.complete =
      !plan.ok() || plan->state == PlanState::kOptimal || plan->state == PlanState::kInfeasible;
  start.stages = StagesOf(std::move(plan));
  return start;
}

PlanStages StartOfPipeDream(const PlanProblem& sequence, absl::Time deadline) {
  if (absl::Now() > deadline) return {};
  return StagesOf(PipeDreamPlan(sequence, Until(deadline)));
}

}  // namespace pipelab
