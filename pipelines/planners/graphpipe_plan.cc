// GraphPipe (Jeon et al., ASPLOS 2025): stages that form a DAG, so that branches run side by side,
// the pipeline is as deep as the longest path, and fewer micro-batches are in flight.
//
// Objectives: the longest stage time of `samples` samples (kGraphStageTime), or what a batch takes
// (kGraphBatchTime, where the problem asks for it), under the limit of memory with in-flight counts
// along the longest path (GraphInFlight). Bisection on the bound: each is answered by the dynamic
// program over the series-parallel tree (graphpipe_bound.h), which also keeps what is in flight at
// the sources lowest, and with it the time to fill and drain. A graph that is not series-parallel
// gets orders until it is (series_parallel.h). That program knows most stages, not all; where the
// graph is small, a search over all convex stages (graphpipe_exact.h) then improves the plan or
// proves it. Where it gives up, the plan is feasible and the bound the simple one.
//
// For a batch's time the bound is raised again from there, and the best of these plans is taken
// (graphpipe_front.h): what is lost at every micro-batch can be won back in fewer of them in
// flight.
#include <algorithm>
#include <limits>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "pipelines/planners/graph_regions.h"
#include "pipelines/planners/graphpipe_bound.h"
#include "pipelines/planners/graphpipe_exact.h"
#include "pipelines/planners/graphpipe_front.h"
#include "pipelines/planners/operator_sets.h"
#include "pipelines/planners/plan_costs.h"
#include "pipelines/planners/planners.h"
#include "tools/base/status_macros.h"

namespace pipelab {
namespace {

constexpr double kRelativeGap = 1e-12;    // where the bisection ends
constexpr double kFrontStep = 1.03;       // from bound to bound
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

class Search {
 public:
  Search(const PlanProblem& problem, const PlannerOptions& options)
      : problem_(problem),
        deadline_(absl::Now() + options.time_limit),
        sets_(problem, options.micro_batch_size),
        regions_(problem),
        plans_(regions_, &sets_) {}

  const OperatorSets& sets() const { return sets_; }
  absl::Time deadline() const { return deadline_; }

  // The least longest stage. False: it was stopped; `best` is the best so far.
  bool Shortest(std::vector<PlanStage>* best, double* value) {
    *value = std::numeric_limits<double>::infinity();
    double lower = SimpleLowerBound(problem_, PlanObjective::kGraphStageTime);
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

  // From `shortest` on, whose longest stage takes `stage_time`. False: it was stopped.
  bool Front(std::vector<PlanStage> shortest, double stage_time, std::vector<Plan>* plans) {
    Keep(std::move(shortest), plans);
    const double pieces = static_cast<double>(BatchSamples(problem_)) /
                          static_cast<double>(problem_.micro_batch_size);
    double best = plans->back().value;
    // A batch takes at least its pieces' time at the slowest stage. What the step up to the bound
    // leaves out was tried before.
    for (double bound = stage_time * kFrontStep; bound / kFrontStep * pieces < best;
         bound *= kFrontStep) {
      std::vector<PlanStage> stages;
      if (absl::Now() > deadline_ || !plans_.Find(bound, deadline_, &stages)) return false;
      PutInOrder(problem_, &stages);
      Keep(std::move(stages), plans);
      best = std::min(best, plans->back().value);
    }
    return true;
  }

 private:
  bool Try(double bound, absl::Time deadline, std::vector<PlanStage>* best, double* value) {
    std::vector<PlanStage> stages;
    if (absl::Now() > deadline || !plans_.Find(bound, deadline, &stages)) return false;
    if (stages.empty()) return true;
    PutInOrder(problem_, &stages);
    const double found = PlanValue(problem_, PlanObjective::kGraphStageTime, stages);
    if (found < *value) {
      *value = found;
      *best = std::move(stages);
    }
    return true;
  }

  // A plan like the one before says nothing new.
  void Keep(std::vector<PlanStage> stages, std::vector<Plan>* plans) const {
    Plan plan;
    plan.planner = "graphpipe";
    plan.state = PlanState::kFeasible;
    plan.objective = PlanObjective::kGraphBatchTime;
    plan.stages = std::move(stages);
    plan.value = PlanValue(problem_, plan.objective, plan.stages);
    plan.lower_bound = SimpleLowerBound(problem_, plan.objective);
    plan.peak_bytes = PeakBytes(problem_, plan.stages);
    if (plans->empty() || plan.value != plans->back().value) plans->push_back(std::move(plan));
  }

  const PlanProblem& problem_;
  const absl::Time deadline_;
  const OperatorSets sets_;
  const GraphRegions regions_;
  BoundedPlans plans_;
};

absl::Status Check(const PlanProblem& problem, const PlannerOptions& options) {
  PIPELAB_RETURN_IF_ERROR(CheckHasPlainVariants(problem, "graphpipe"));
  if (problem.objective == PlanObjective::kMaxLoad) {
    return absl::InvalidArgumentError(
        "--planner=graphpipe: it cannot plan dnn-partitioning inputs");
  }
  const int64_t batch = BatchSamples(problem);
  if (options.micro_batch_size < 0 ||
      (options.micro_batch_size > 0 && batch % options.micro_batch_size != 0)) {
    return absl::InvalidArgumentError(
        absl::StrCat("--stage_micro_batch_size=", options.micro_batch_size,
                     ": must divide the batch of ", batch));
  }
  return absl::OkStatus();
}

Plan ShortestStagePlan(const PlanProblem& problem, const PlannerOptions& options) {
  constexpr PlanObjective kObjective = PlanObjective::kGraphStageTime;
  Plan plan;
  plan.objective = kObjective;
  plan.lower_bound = SimpleLowerBound(problem, kObjective);
  Search search(problem, options);
  const bool finished = search.Shortest(&plan.stages, &plan.value);
  ExactResult exact;
  if (finished) {
    exact = BetterGraphPlan(search.sets(), plan.value * (1 - kRelativeGap), kExactEffort,
                            search.deadline());
  }
  if (!exact.stages.empty()) {
    plan.stages = std::move(exact.stages);
    PutInOrder(problem, &plan.stages);
    plan.value = PlanValue(problem, kObjective, plan.stages);
  }
  const bool proven = exact.complete || plan.value <= plan.lower_bound;
  if (plan.stages.empty()) plan.value = 0;
  SetState(proven, !finished || absl::Now() > search.deadline(), &plan);
  return plan;
}

// Of all on the front. `finished`: the search was not stopped.
std::vector<Plan> Front(const PlanProblem& problem, const PlannerOptions& options, bool* finished) {
  Search search(problem, options);
  std::vector<PlanStage> shortest;
  double stage_time = 0;
  std::vector<Plan> plans;
  *finished = search.Shortest(&shortest, &stage_time);
  if (shortest.empty()) return plans;
  *finished = search.Front(std::move(shortest), stage_time, &plans) && *finished;
  return plans;
}

Plan ShortestBatchPlan(const PlanProblem& problem, const PlannerOptions& options) {
  bool finished = true;
  std::vector<Plan> plans = Front(problem, options, &finished);
  Plan plan;
  plan.objective = PlanObjective::kGraphBatchTime;
  plan.lower_bound = SimpleLowerBound(problem, plan.objective);
  const auto best = std::min_element(
      plans.begin(), plans.end(), [](const Plan& a, const Plan& b) { return a.value < b.value; });
  if (best != plans.end()) plan = std::move(*best);
  SetState(plan.has_plan() && plan.value <= plan.lower_bound, !finished, &plan);
  return plan;
}

}  // namespace

absl::StatusOr<Plan> GraphPipePlan(const PlanProblem& problem, const PlannerOptions& options) {
  PIPELAB_RETURN_IF_ERROR(Check(problem, options));
  return problem.objective == PlanObjective::kGraphBatchTime ? ShortestBatchPlan(problem, options)
                                                             : ShortestStagePlan(problem, options);
}

absl::StatusOr<std::vector<Plan>> GraphPipeFront(const PlanProblem& problem,
                                                 const PlannerOptions& options) {
  PIPELAB_RETURN_IF_ERROR(Check(problem, options));
  bool finished = true;
  std::vector<Plan> plans = Front(problem, options, &finished);
  if (plans.empty()) {
    plans.emplace_back();
    plans[0].planner = "graphpipe";
    plans[0].objective = PlanObjective::kGraphBatchTime;
    plans[0].lower_bound = SimpleLowerBound(problem, PlanObjective::kGraphBatchTime);
  }
  for (Plan& plan : plans) SetState(/*proven=*/false, !finished, &plan);
  return plans;
}

}  // namespace pipelab
