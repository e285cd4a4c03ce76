// GraphPipe (Jeon et al., ASPLOS 2025): stages that form a DAG, so that branches run side by side,
// the pipeline is as deep as the longest path, and fewer micro-batches are in flight.
//
// Objective: the longest stage time of `samples` samples (Piper's formula), under the limit of
// memory with in-flight counts along the longest path (GraphInFlight). Bisection on the bound: each
// is answered by the dynamic program over the series-parallel tree (graphpipe_bound.h), which also
// keeps what is in flight at the sources lowest, and with it the time to fill and drain. A graph
// that is not series-parallel gets orders until it is (series_parallel.h). That program knows most
// stages, not all; where the graph is small, a search over all convex stages (graphpipe_exact.h)
// then improves the plan or proves it. Where it gives up, the plan is feasible and the bound the
// simple one.
#include <algorithm>
#include <limits>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "pipelines/plan/graph_regions.h"
#include "pipelines/plan/graphpipe_bound.h"
#include "pipelines/plan/graphpipe_exact.h"
#include "pipelines/plan/operator_sets.h"
#include "pipelines/plan/plan_costs.h"
#include "pipelines/plan/planners.h"
#include "tools/base/status_macros.h"

namespace pipelab {
namespace {

constexpr PlanObjective kObjective = PlanObjective::kGraphStageTime;
constexpr double kRelativeGap = 1e-12;    // where the bisection ends
constexpr int64_t kExactEffort = 100000;  // stages

// In the order of the stage graph, with what is in flight.
void PutInOrder(const PlanProblem& problem, std::vector<PlanStage>* stages) {
  Plan unordered;
  unordered.stages = std::move(*stages);
  const auto edges = StageEdges(problem, unordered);
  std::vector<int> missing(unordered.stages.size());
  for (const auto& [from, to] : edges) ++missing[to];
  // Of those that can be next the one with the first operator: branches one after the other.
  std::set<std::pair<int, int>> ready;
  const auto add = [&](int s) { ready.emplace(unordered.stages[s].layers[0], s); };
  for (int s = 0; s < static_cast<int>(missing.size()); ++s) {
    if (missing[s] == 0) add(s);
  }
  stages->clear();
  while (!ready.empty()) {
    const int s = ready.begin()->second;
    ready.erase(ready.begin());
    stages->push_back(std::move(unordered.stages[s]));
    for (const auto& [from, to] : edges) {
      if (from == s && --missing[to] == 0) add(to);
    }
  }
  const std::vector<int64_t> in_flight = GraphInFlight(problem, *stages);
  for (size_t s = 0; s < stages->size(); ++s) (*stages)[s].in_flight = in_flight[s];
}

class Bisection {
 public:
  Bisection(const PlanProblem& problem, BoundedPlans* plans, absl::Time deadline)
      : problem_(problem), plans_(*plans), deadline_(deadline) {}

  // False: it was stopped; `best` is the best so far.
  bool Run(double lower, std::vector<PlanStage>* best, double* value) {
    *value = std::numeric_limits<double>::infinity();
    // Some plan, whatever the time limit.
    Try(std::numeric_limits<double>::max(), absl::InfiniteFuture(), best, value);
    while (!best->empty() && lower < *value * (1 - kRelativeGap)) {
      const double middle = lower + (*value - lower) / 2;
      const double before = *value;
      if (!Try(middle, deadline_, best, value)) return false;
      if (*value == before) lower = middle;
    }
    return true;
  }

 private:
  bool Try(double bound, absl::Time deadline, std::vector<PlanStage>* best, double* value) {
    std::vector<PlanStage> stages;
    if (absl::Now() > deadline || !plans_.Find(bound, deadline, &stages)) return false;
    if (stages.empty()) return true;
    PutInOrder(problem_, &stages);
    const double found = PlanValue(problem_, kObjective, stages);
    if (found < *value) {
      *value = found;
      *best = std::move(stages);
    }
    return true;
  }

  const PlanProblem& problem_;
  BoundedPlans& plans_;
  const absl::Time deadline_;
};

}  // namespace

absl::StatusOr<Plan> GraphPipePlan(const PlanProblem& problem, const PlannerOptions& options) {
  PIPELAB_RETURN_IF_ERROR(CheckHasPlainVariants(problem, "graphpipe"));
  if (problem.objective == PlanObjective::kMaxLoad) {
    return absl::InvalidArgumentError("--planner=graphpipe: it plans no dnn-partitioning inputs");
  }
  const int64_t batch = BatchSamples(problem);
  if (options.micro_batch_samples < 0 ||
      (options.micro_batch_samples > 0 && batch % options.micro_batch_samples != 0)) {
    return absl::InvalidArgumentError(
        absl::StrCat("--micro_batch_samples=", options.micro_batch_samples,
                     ": must divide the batch of ", batch));
  }
  const absl::Time deadline = absl::Now() + options.time_limit;
  Plan plan;
  plan.objective = kObjective;
  plan.lower_bound = SimpleLowerBound(problem, kObjective);
  const OperatorSets sets(problem, options.micro_batch_samples);
  const GraphRegions regions(problem);
  BoundedPlans plans(regions, &sets);
  const bool finished =
      Bisection(problem, &plans, deadline).Run(plan.lower_bound, &plan.stages, &plan.value);
  ExactResult exact;
  if (finished)
    exact = BetterGraphPlan(sets, plan.value * (1 - kRelativeGap), kExactEffort, deadline);
  if (!exact.stages.empty()) {
    plan.stages = std::move(exact.stages);
    PutInOrder(problem, &plan.stages);
    plan.value = PlanValue(problem, kObjective, plan.stages);
  }
  const bool proven = exact.complete || plan.value <= plan.lower_bound;
  if (plan.stages.empty()) plan.value = 0;
  SetState(proven, !finished || absl::Now() > deadline, &plan);
  return plan;
}

}  // namespace pipelab
