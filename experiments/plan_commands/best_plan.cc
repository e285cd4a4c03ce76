#include "experiments/plan_commands/best_plan.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "absl/types/optional.h"
#include "pipelines/checker/check_plan.h"
#include "pipelines/planners/graphpipe_front.h"
#include "tools/base/status_macros.h"
#include "tools/base/text_columns.h"

namespace pipelab {
namespace {

constexpr absl::Duration kMostOfPlanner = absl::Seconds(5);  // where no limit is given

bool OfOneKind(const PlanProblem& problem) {
  return problem.objective == PlanObjective::kMaxLoad || !problem.device_speeds.empty();
}

// In the problem's unit, simulated ones in seconds.
absl::StatusOr<double> JudgedTime(const PlanProblem& problem, const Plan& plan,
                                  PlanSimulator* simulator) {
  if (simulator != nullptr) return simulator->StepSeconds(plan);
  Plan judged = plan;
  if (!OfOneKind(problem)) {
    judged.objective = PlanObjective::kGraphBatchTime;
    for (PlanStage& stage : judged.stages) {
      stage.in_flight = 0;
      // Copies that divide a micro-batch have one of their own each.
      if (stage.micro_batch_size % stage.data != 0) stage.micro_batch_size = 0;
    }
  }
  PIPELAB_ASSIGN_OR_RETURN(const PlanReport report, EvaluatePlan(problem, judged));
  return report.value;
}

absl::StatusOr<std::vector<Plan>> PlansOf(const Planner& planner, const PlanProblem& problem,
                                          PlannerOptions options, bool several) {
  std::vector<Plan> plans;
  absl::optional<PlanProblem> of_batch;
  if (planner.name == "graphpipe" && !OfOneKind(problem)) {
    of_batch = problem;
    of_batch->objective = PlanObjective::kGraphBatchTime;
    if (several) {
      PlannerOptions half = options;
      half.time_limit /= 2;
      PIPELAB_ASSIGN_OR_RETURN(plans, GraphPipeFront(*of_batch, half));
      for (Plan& plan : plans) plan.search_time = absl::ZeroDuration();
      options.time_limit = half.time_limit;
    }
  }
  const PlanProblem& asked = of_batch.has_value() ? *of_batch : problem;
  PIPELAB_ASSIGN_OR_RETURN(Plan plan, MakePlan(planner.name, asked, options));
  plans.insert(plans.begin(), std::move(plan));
  const bool any_number = planner.stages && planner.name != "terapipe" && options.stages == 0;
  for (int64_t stages = 1; several && any_number && stages < problem.devices; ++stages) {
    if (problem.devices % stages != 0 || stages > problem.size()) continue;
    options.stages = static_cast<int>(stages);
    absl::StatusOr<Plan> other = MakePlan(planner.name, asked, options);
    if (other.ok()) plans.push_back(*std::move(other));
  }
  return plans;
}

// The best so far, by one price.
struct FoundPlan {
  double value = std::numeric_limits<double>::infinity();
  Plan plan;
};

// A planner's line: its best plan's figure, or why it has none. After the deadline plans are judged
// only as long as there is no best one.
std::vector<std::string> JudgePlans(const PlanProblem& problem, const std::vector<Plan>& plans,
                                    PlanSimulator* simulator, absl::Time deadline,
                                    FoundPlan* best) {
  double shortest = std::numeric_limits<double>::infinity();
  std::string reason = "no plan";
  absl::Duration search;
  for (const Plan& plan : plans) search += plan.search_time;
  for (size_t i = 0; i < plans.size(); ++i) {
    if (!plans[i].has_plan()) continue;
    if (absl::Now() > deadline && !std::isinf(best->value)) {
      if (i == 0) reason = "not judged within the time limit";
      continue;
    }
    const absl::StatusOr<double> time = JudgedTime(problem, plans[i], simulator);
    if (!time.ok()) {
      if (i == 0) reason = std::string(time.status().message());
      continue;
    }
    shortest = std::min(shortest, *time);
    if (*time >= best->value) continue;
    *best = {*time, plans[i]};
    best->plan.search_time = search;
  }
  return {plans[0].planner, PlanStateName(plans[0].state),
          std::isinf(shortest) ? reason : absl::StrFormat("%.6g", shortest),
          absl::StrFormat("%.3f", absl::ToDoubleSeconds(search))};
}

}  // namespace

absl::StatusOr<BestPlan> FindBestPlan(const std::string& planner, const PlanProblem& problem,
                                      const PlannerOptions& options, PlanSimulator* simulator) {
  std::vector<Planner> planners;
  for (const Planner& each : Planners()) {
    if (planner == "best" || planner == each.name) planners.push_back(each);
  }
  if (planners.empty()) return MakePlan(planner, problem, options).status();  // no such planner
  const bool limited = options.time_limit < absl::InfiniteDuration();
  const absl::Time deadline = absl::Now() + options.time_limit;
  FoundPlan found;
  std::vector<Plan> without;  // the first planner's, if none has a plan
  absl::Status refused = absl::OkStatus();
  std::vector<std::vector<std::string>> lines = {
      {"planner", "state", simulator != nullptr ? "a step, simulated [s]" : "judged",
       "search [s]"}};
  for (size_t i = 0; i < planners.size(); ++i) {
    PlannerOptions part = options;
    if (limited) {
      const auto left = static_cast<double>(planners.size() - i);
      part.time_limit = std::max(absl::ZeroDuration(), (deadline - absl::Now()) / left);
    } else if (planners[i].name != "graphpipe") {  // which ends by itself
      part.time_limit = kMostOfPlanner;
    }
    if (absl::Now() > deadline && !std::isinf(found.value)) {
      lines.push_back({std::string(planners[i].name), "not run", "time limit reached", "0.000"});
      continue;
    }
    const absl::StatusOr<std::vector<Plan>> plans =
        PlansOf(planners[i], problem, part, simulator != nullptr);
    if (!plans.ok()) {
      if (refused.ok()) refused = plans.status();
      continue;
    }
    if (without.empty()) without.push_back((*plans)[0]);
    lines.push_back(JudgePlans(problem, *plans, simulator, deadline, &found));
  }
  if (without.empty()) return refused;
  BestPlan best;
  best.plan = std::isinf(found.value) ? std::move(without[0]) : std::move(found.plan);
  best.table = AlignColumns(lines, 0, {false, false, true, true});
  return best;
}

}  // namespace pipelab
