// Piper (Tarnawski et al., NeurIPS 2021): the least largest stage time over all cuts of a graph
// into a sequence of stages, each with copies, a tensor degree, and per layer whether it
// recomputes.
#include <algorithm>
#include <array>
#include <cmath>

#include "absl/status/status.h"
#include "pipelines/planners/equal_branches.h"
#include "pipelines/planners/graph_search.h"
#include "pipelines/planners/operator_sets.h"
#include "pipelines/planners/order_plans.h"
#include "pipelines/planners/piper_search.h"
#include "pipelines/planners/plan_costs.h"
#include "pipelines/planners/planners.h"
#include "tools/base/status_macros.h"

namespace pipelab {
namespace {

constexpr int kManySets = 30000;
constexpr std::array<int, 4> kSetsOfPiperSearches = {100, 600, 4000, 150000};
constexpr int kMostSetsByBound = 4000;
constexpr absl::Duration kPatience = absl::Seconds(8);
constexpr double kProofTolerance = 1e-11;  // relative
constexpr int64_t kStepsOfOrders = 20'000'000;
constexpr int kRoundsOfOrders = 200;

PiperResult SearchPiper(const PiperCosts& costs, const PlanProblem& problem, double upper,
                        absl::Time deadline) {
  return SuitsPiperByCopies(costs, problem) ? PiperByCopies(costs, problem, upper, deadline)
                                            : PiperByBound(costs, problem, upper, deadline);
}

// One search over the groups' cuts; keeps the better plan. False where it was not finished. `equal`
// branches: of cuts that are alike one; or null.
bool SearchPiperGroups(const PlanProblem& problem, const OperatorGroups& groups,
                       const EqualBranches* equal, int limit, absl::Time deadline,
                       PiperResult* best) {
  const auto sets =
      Downsets::Make(equal != nullptr ? equal->InOrder(groups) : groups.followers, limit);
  if (!sets.has_value()) return false;
  const PiperCosts costs(problem, groups, *sets, equal, deadline);
  best->stopped = costs.stopped();
  if (best->stopped) return false;
  // What a stage sends depends on variants then.
  if (equal != nullptr && !costs.uniform()) {
    return SearchPiperGroups(problem, groups, nullptr, limit, deadline, best);
  }
  if (!SuitsPiperByCopies(costs, problem) && sets->size() > kMostSetsByBound) return false;
  PiperResult found = SearchPiper(costs, problem, best->value, deadline);
  best->lower_bound = found.lower_bound;
  best->stopped = found.stopped;
  if (!found.stages.empty() && found.value < best->value) {
    best->value = found.value;
    best->stages = std::move(found.stages);
  }
  return !found.stopped && costs.exact();
}

// What joined layers cannot make: orders of single ones. Graphs with tensor degrees have none.
void ImprovePiperByOrders(const PlanProblem& given, absl::Time deadline, PiperResult* best) {
  if (absl::Now() > deadline) return;
  PlanProblem problem = given;
  for (PlanOperator& o : problem.operators) {
    if (o.variants.size() > 1 || o.variants.count(1) == 0) return;
    for (PlanVariant& v : o.variants.at(1)) v.times.clear();
  }
  problem.levels.clear();
  problem.micro_batch_sizes.clear();
  problem.batch_samples = 0;
  problem.latency = 0;
  const OperatorSets sets(problem, 0);
  GraphGoal goal;
  goal.sequence = true;
  GraphSearch search(sets, goal);
  search.Offer(best->stages);
  SearchEffort effort(kStepsOfOrders, deadline);
  search.TryOrdersOfGraph(kDepthFirstOrders, &effort);
  search.Improve({kRoundsOfOrders}, 0, &effort);
  if (search.value() >= best->value) return;
  best->value = search.value();
  best->stages = search.stages();
}

}  // namespace

absl::StatusOr<Plan> PiperPlan(const PlanProblem& problem, const PlannerOptions& options) {
  // Without copies and degrees, the same search over downsets.
  if (problem.objective == PlanObjective::kMaxLoad) return MaxLoadPlan(problem, options);
  if (!(problem.bandwidth > 0)) {
    return absl::InvalidArgumentError("--planner=piper: it needs a --bandwidth");
  }
  const absl::Time deadline = absl::Now() + options.time_limit;
  const OperatorGroups groups = SingleGroups(problem);
  const EqualBranches branches(problem);
  const EqualBranches* equal = branches.any() ? &branches : nullptr;
  const double bound = SimpleLowerBound(problem, PlanObjective::kStageTime);
  PiperResult best;
  best.value = options.known_value;
  // A search that may be long has what was found before it as a plan with a bound. Who gives no
  // limit gets one; a limit that is given is the only clock that decides what is found.
  const auto until = [&] {
    return options.time_limit == absl::InfiniteDuration() ? absl::Now() + kPatience : deadline;
  };
  // Ever finer: what is found with few cuts bounds the next search.
  bool proven = false;
  for (int limit : kSetsOfPiperSearches) {
    if (best.stopped) break;
    const bool last = limit == kSetsOfPiperSearches.back();
    proven = SearchPiperGroups(problem, groups, equal, limit, last ? until() : deadline, &best);
    if (proven || last) break;
    SearchPiperGroups(problem, CoarserGroups(groups, limit), nullptr, limit, deadline, &best);
  }
  if (!proven && !best.stopped) {
    SearchPiperGroups(problem, CoarserGroups(groups, kManySets), nullptr, kManySets, until(),
                      &best);
  }
  if (!proven) ImprovePiperByOrders(problem, deadline, &best);
  best.stopped &= absl::Now() > deadline;
  if (best.stopped && best.stages.empty() && std::isinf(options.known_value)) {
    // There was no time for anything: any plan is better than none.
    SearchPiperGroups(problem, CoarserGroups(groups, kFewSets), nullptr, kFewSets,
                      absl::InfiniteFuture(), &best);
    best.stopped = true;
  }
  Plan plan;
  plan.objective = PlanObjective::kStageTime;
  plan.stages = std::move(best.stages);
  plan.value = plan.has_plan() ? PlanValue(problem, plan.objective, plan.stages) : 0;
  plan.lower_bound = proven && plan.has_plan() ? std::max(bound, best.lower_bound) : bound;
  if (proven && !plan.has_plan()) {
    plan.state = PlanState::kInfeasible;
    if (!std::isinf(options.known_value)) plan.lower_bound = options.known_value;
  } else if (best.stopped || !plan.has_plan()) {
    plan.state = PlanState::kTimeLimit;
  } else {
    plan.state = plan.lower_bound >= plan.value * (1 - kProofTolerance) ? PlanState::kOptimal
                                                                        : PlanState::kFeasible;
  }
  if (plan.has_plan()) plan.lower_bound = std::min(plan.lower_bound, plan.value);
  return plan;
}

}  // namespace pipelab
