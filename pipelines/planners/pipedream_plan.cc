// PipeDream (Narayanan et al., SOSP 2019): stages of a prefix, cut by cut, each on so many machines
// of a network level; what a level makes of an interval is one machine's time on the level above.
//
// A stage of time t with w bytes of parameters on q machines takes (t + 4 (q - 1) w / (b q)) / q,
// and communication is hidden behind it: 2 a / (b q) for the bytes a over its lower cut, and over
// its upper one but for the first stage of a level, whose output the next stage's input stands for.
// On several levels all machines are used, as in PipeDream; on one, some may be left where they
// would only have to synchronise.
#include <algorithm>
#include <array>
#include <cmath>

#include "absl/status/status.h"
#include "absl/time/clock.h"
#include "pipelines/planners/best_stages.h"
#include "pipelines/planners/downsets.h"
#include "pipelines/planners/pipedream_search.h"
#include "pipelines/planners/plan_costs.h"
#include "pipelines/planners/plan_groups.h"
#include "pipelines/planners/planners.h"
#include "tools/base/status_macros.h"

namespace pipelab {
namespace {

constexpr std::array<int, 4> kSetsOfPipeDreamSearches = {60, 400, 3000, 100000};
constexpr std::array<int, 4> kSetsOfLevels = {60, 150, 400, 1500};
constexpr int kMostSetsByLevels = 1500;  // of several levels: they need a table of pairs

// No plan on several levels is better than one on the outermost alone, where each of its machines
// is as fast as all devices in it and synchronises as the first stage does.
double BoundOfLevels(const PlanProblem& problem, const OperatorGroups& groups, int limit,
                     absl::Time deadline) {
  const auto sets = Downsets::Make(groups.followers, limit);
  if (!sets.has_value()) return 0;
  PlanProblem top = problem;
  top.levels = {problem.levels.back()};
  top.devices = problem.levels.back().devices;
  const int64_t below_each = problem.devices / top.devices;
  const auto below = static_cast<double>(below_each);
  const auto inner = static_cast<double>(problem.levels[problem.levels.size() - 2].devices);
  for (PlanOperator& o : top.operators) {
    PlanVariant& plain = o.variants.at(1)[PlainVariantOf(o)];
    plain.time /= below;
    plain.parameter_bytes /= inner;
  }
  const FoundStages found = PipeDreamByCopies(top, groups, *sets, kInfinity, deadline);
  if (found.stopped || found.stages.empty()) return 0;
  return PlanValue(top, PlanObjective::kPipeDream, found.stages);
}

// False: too many sets, or no time.
bool SearchPipeDreamGroups(const PlanProblem& problem, const OperatorGroups& groups, int limit,
                           absl::Time deadline, BestStages* best) {
  const double upper = best->value * (1 - kExact);
  if (problem.levels.size() == 1) {
    const auto sets = Downsets::Make(groups.followers, limit);
    if (!sets.has_value()) return false;
    return best->Take(problem, PlanObjective::kPipeDream,
                      PipeDreamByCopies(problem, groups, *sets, upper, deadline));
  }
  const auto sets = Downsets::Make(Needs(groups), std::min(limit, kMostSetsByLevels));
  if (!sets.has_value()) return false;
  const double bound = BoundOfLevels(problem, groups, limit, deadline);
  if (bound > upper) return true;  // the best is the best
  return best->Take(problem, PlanObjective::kPipeDream,
                    PipeDreamByLevels(problem, groups, *sets, upper, bound, deadline));
}

}  // namespace

absl::StatusOr<Plan> PipeDreamPlan(const PlanProblem& given, const PlannerOptions& options) {
  const absl::Time deadline = absl::Now() + options.time_limit;
  PIPELAB_RETURN_IF_ERROR(CheckHasPlainVariants(given, "pipedream"));
  if (given.objective == PlanObjective::kMaxLoad) {
    return absl::InvalidArgumentError(
        "--planner=pipedream: it cannot plan dnn-partitioning inputs");
  }
  PlanProblem problem = given;
  if (problem.objective != PlanObjective::kPipeDream) {
    problem.levels = {{problem.devices, problem.bandwidth}};
  }
  if (problem.levels.size() > 1 && std::isfinite(problem.memory_bytes)) {
    return absl::InvalidArgumentError(
        "--memory: PipeDream's planner knows no memory limit on several network levels");
  }
  const OperatorGroups groups = SingleGroups(problem);
  BestStages best;
  bool proven = false;
  const auto& limits = problem.levels.size() > 1 ? kSetsOfLevels : kSetsOfPipeDreamSearches;
  for (int limit : limits) {
    if (best.stopped) break;
    proven = SearchPipeDreamGroups(problem, groups, limit, deadline, &best);
    if (proven || limit == limits.back()) break;
    if (best.stopped) break;
    SearchPipeDreamGroups(problem, CoarserGroups(groups, limit), limit, deadline, &best);
  }
  if (best.stopped && best.stages.empty()) {
    // There was no time for anything: any plan is better than none.
    SearchPipeDreamGroups(problem, CoarserGroups(groups, kFewSets), kFewSets,
                          absl::InfiniteFuture(), &best);
    best.stopped = true;
  }
  return std::move(best).ToPlan(problem, PlanObjective::kPipeDream, proven);
}

}  // namespace pipelab
