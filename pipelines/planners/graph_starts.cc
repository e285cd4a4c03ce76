#include "pipelines/planners/graph_starts.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "absl/time/clock.h"
#include "pipelines/planners/downsets.h"
#include "pipelines/planners/plan_costs.h"
#include "pipelines/planners/plan_groups.h"
#include "pipelines/planners/planners.h"

namespace pipelab {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr absl::Duration kMostOfPlanner = absl::Seconds(10);
constexpr int kMostCutsOfBound = 150000;  // Piper's own

// Samples of the smallest micro-batch that a copy can have.
int64_t LeastCopySamples(const PlanProblem& problem) {
  if (problem.micro_batch_sizes.empty()) return problem.micro_batch_size;
  int64_t least = problem.micro_batch_sizes.back();
  for (int64_t size : problem.micro_batch_sizes) {
    for (int64_t copies = 1; copies <= std::min(size, problem.devices); ++copies) {
      if (size % copies == 0) least = std::min(least, size / copies);
    }
  }
  return least;
}

// Per sample, at the best size; of the problem's micro-batch. Between sizes times are on a line, so
// that a time a sample is least at one of them.
double LeastTime(const PlanProblem& problem, const PlanVariant& variant) {
  if (variant.times.empty()) return variant.time;
  double least = kInfinity;
  for (int64_t samples : problem.micro_batch_sizes) {
    const auto size = static_cast<double>(samples);
    least = std::min(least, TimesOfSamples(problem, variant, size).time / size);
  }
  return least * static_cast<double>(problem.micro_batch_size);
}

PlanProblem Relaxed(const PlanProblem& problem) {
  PlanProblem relaxed = problem;
  relaxed.objective = PlanObjective::kStageTime;
  relaxed.bandwidth = FlatBandwidth(problem);
  double fastest = relaxed.bandwidth;
  for (int64_t copies = 2; copies <= problem.devices; copies *= 2) {
    fastest = std::max(fastest, CopiesBandwidth(problem, copies));
  }
  // Copies divide micro-batches, and Piper has at most as many copies as micro-batches.
  const int64_t batch = BatchSamples(problem) / problem.micro_batch_size;
  relaxed.micro_batches = problem.micro_batch_sizes.empty() ? batch : BatchSamples(problem);
  relaxed.micro_batches *= (problem.devices + relaxed.micro_batches - 1) / relaxed.micro_batches;
  const double sums = relaxed.bandwidth / fastest * static_cast<double>(relaxed.micro_batches) /
                      static_cast<double>(problem.micro_batches);
  const double kept = static_cast<double>(LeastCopySamples(problem)) /
                      static_cast<double>(problem.micro_batch_size);
  for (PlanOperator& o : relaxed.operators) {
    for (auto& [degree, variants] : o.variants) {
      for (PlanVariant& v : variants) {
        v.time = LeastTime(problem, v);
        v.parameter_bytes *= sums;
        v.fixed_bytes += v.in_flight_bytes * kept;
        v.in_flight_bytes = 0;
        v.times.clear();
      }
    }
  }
  relaxed.levels.clear();
  relaxed.micro_batch_sizes.clear();
  relaxed.batch_samples = 0;
  relaxed.latency = 0;
  return relaxed;
}

bool FewCuts(const PlanProblem& problem) {
  return Downsets::Make(SingleGroups(problem).followers, kMostCutsOfBound).has_value();
}

// What planners of sequences plan.
PlanProblem Sequence(const PlanProblem& problem) {
  PlanProblem sequence = problem;
  sequence.objective = PlanObjective::kStageTime;
  sequence.bandwidth = FlatBandwidth(problem);
  return sequence;
}

PlannerOptions Until(absl::Time deadline, double share) {
  PlannerOptions options;
  const absl::Duration left = deadline - absl::Now();
  options.time_limit = std::max(absl::ZeroDuration(), std::min(kMostOfPlanner, left * share));
  return options;
}

void AddPlan(absl::StatusOr<Plan> plan, std::vector<std::vector<PlanStage>>* plans) {
  if (!plan.ok() || !plan->has_plan()) return;
  // In proportion to copies, whatever the planner's own micro-batches are.
  for (PlanStage& stage : plan->stages) stage.micro_batch_size = 0;
  plans->push_back(std::move(plan->stages));
}

}  // namespace

std::vector<std::vector<PlanStage>> QuickStarts(const PlanProblem& problem, absl::Time deadline) {
  const PlanProblem sequence = Sequence(problem);
  std::vector<std::vector<PlanStage>> plans;
  AddPlan(UniformPlan(sequence, {}), &plans);
  for (const auto planner : {&GpipePlan, &ChainPlan, &DapplePlan}) {
    if (absl::Now() < deadline) AddPlan(planner(sequence, Until(deadline, 0.25)), &plans);
  }
  return plans;
}

SequentialStarts ExactStarts(const PlanProblem& problem, double known, absl::Time deadline) {
  SequentialStarts starts;
  starts.lower_bound = SimpleLowerBound(problem, PlanObjective::kGraphStageTime);
  starts.bound_reason = "the work of all operators over the devices, or the largest operator";
  const PlanProblem sequence = Sequence(problem);
  const auto piper = [&](const PlanProblem& of) {
    PlannerOptions options = Until(deadline, 0.7);
    options.known_value = known;
    return PiperPlan(of, options);
  };
  if (absl::Now() < deadline) {
    absl::StatusOr<Plan> plan = piper(sequence);
    starts.complete =
        !plan.ok() || plan->state == PlanState::kOptimal || plan->state == PlanState::kInfeasible;
    AddPlan(std::move(plan), &starts.plans);
  }
  if (absl::Now() < deadline) {
    AddPlan(PipeDreamPlan(sequence, Until(deadline, 0.5)), &starts.plans);
  }
  if (absl::Now() > deadline || !FewCuts(problem)) return starts;
  absl::StatusOr<Plan> relaxed = piper(Relaxed(problem));
  if (!relaxed.ok()) return starts;
  starts.infeasible = relaxed->state == PlanState::kInfeasible && std::isinf(known);
  if (relaxed->lower_bound > starts.lower_bound) {
    starts.lower_bound = relaxed->lower_bound;
    starts.bound_reason = "the best stages if each kept one micro-batch";
  }
  AddPlan(std::move(relaxed), &starts.plans);
  return starts;
}

}  // namespace pipelab
