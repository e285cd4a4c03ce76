// The exact split of dnn-partitioning (Tarnawski et al., NeurIPS 2020): stages on accelerators and
// processors, one device each, so that the largest load is the smallest. An accelerator's load is
// its operators' times and the transfers of every output that crosses its border, once each; a
// processor does not pay for transfers.
//
// Searches (max_load_search.h) over groups of operators that get finer, each with what the one
// before it found to beat.
#include <algorithm>
#include <array>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/clock.h"
#include "pipelines/planners/best_stages.h"
#include "pipelines/planners/chain_ranges.h"
#include "pipelines/planners/downsets.h"
#include "pipelines/planners/graph_lines.h"
#include "pipelines/planners/max_load_search.h"
#include "pipelines/planners/placement_units.h"
#include "pipelines/planners/plan_costs.h"
#include "pipelines/planners/plan_groups.h"
#include "pipelines/planners/planners.h"
#include "tools/base/status_macros.h"

namespace pipelab {
namespace {

constexpr double kStepsOfCuts = 3e7, kMostOrders = 400;
constexpr std::array<int, 4> kSetsOfLoadSearches = {100, 600, 4000, 100000};

// False: too many sets, or no time.
bool SearchLoadGroups(const PlanProblem& problem, const OperatorGroups& groups, int limit,
                      absl::Time deadline, BestStages* best) {
  const auto sets = Downsets::Make(Needs(groups), limit);
  if (!sets.has_value()) return false;
  return best->Take(problem, PlanObjective::kMaxLoad,
                    SearchMaxLoad(problem, groups, *sets, best->value * (1 - kExact), deadline));
}

bool OnAcceleratorsAlone(const PlanProblem& problem) {
  return problem.devices > 0 && std::all_of(problem.operators.begin(), problem.operators.end(),
                                            [](const PlanOperator& o) { return o.on_accelerator; });
}

// What joined groups cannot make: cuts of orders of the groups, first of random ones, then of those
// that keep the best plan's stages together.
void ImproveLoadByOrders(const PlanProblem& problem, const OperatorGroups& groups,
                         absl::Time deadline, BestStages* best) {
  const auto size = static_cast<int>(groups.members.size());
  const int most = static_cast<int>(std::min<int64_t>(problem.devices, size));
  const double steps = static_cast<double>(size) * size * (most + 8);
  const int rounds = static_cast<int>(std::clamp(kStepsOfCuts / steps, 4.0, kMostOrders));
  GraphLines lines(groups.followers);
  for (int round = 0; round < rounds && absl::Now() < deadline; ++round) {
    std::vector<int> stage_of(size);
    const bool anew = best->stages.empty() || round < rounds / 8;
    for (size_t s = 0; s < best->stages.size() && !anew; ++s) {
      for (int v : best->stages[s].layers) stage_of[groups.group_of[v]] = static_cast<int>(s);
    }
    const int parts = anew ? 1 : static_cast<int>(best->stages.size());
    const auto kind = anew ? LineKind::kDepthFirst : static_cast<LineKind>(lines.Draw(3));
    std::vector<std::vector<int>> line;
    for (int g : lines.Next(stage_of, parts, kind)) line.push_back(groups.members[g]);
    const ChainRanges cut = BestRanges(problem, line, 0, most, deadline);
    if (cut.first.empty() || cut.value > best->value) continue;
    Plan plan = PlanOfRanges(problem, PlanObjective::kMaxLoad, line, cut.first);
    if (!plan.has_plan() || plan.value > best->value) continue;
    best->value = plan.value;
    best->stages = std::move(plan.stages);
  }
}

}  // namespace

absl::StatusOr<Plan> MaxLoadPlan(const PlanProblem& problem, const PlannerOptions& options) {
  const absl::Time deadline = absl::Now() + options.time_limit;
  if (problem.objective != PlanObjective::kMaxLoad) {
    return absl::InvalidArgumentError(
        "--planner=max_load: it plans dnn-partitioning inputs only (--dnn_partitioning_json)");
  }
  PIPELAB_RETURN_IF_ERROR(CheckHasPlainVariants(problem, "max_load"));
  OperatorGroups groups = PlacementUnits(problem, JoinIdle::kFree);
  bool exact = true;
  if (!Downsets::Make(Needs(groups), kSetsOfLoadSearches.back()).has_value()) {
    groups = PlacementUnits(problem, JoinIdle::kAll);
    exact = LosesNothing(problem);
  }
  BestStages best;
  bool proven = false;
  for (int limit : kSetsOfLoadSearches) {
    if (best.stopped) break;
    proven = SearchLoadGroups(problem, groups, limit, deadline, &best);
    if (proven || limit == kSetsOfLoadSearches.back()) break;
    SearchLoadGroups(problem, CoarserGroups(groups, limit), limit, deadline, &best);
  }
  if (best.stopped && best.stages.empty()) {
    // There was no time for anything: any plan is better than none.
    SearchLoadGroups(problem, CoarserGroups(groups, kFewSets), kFewSets, absl::InfiniteFuture(),
                     &best);
    best.stopped = true;
  }
  if (!proven && problem.processors == 0 && OnAcceleratorsAlone(problem)) {
    ImproveLoadByOrders(problem, groups, deadline, &best);
  }
  return std::move(best).ToPlan(problem, PlanObjective::kMaxLoad, proven && exact);
}

}  // namespace pipelab