#include "experiments/commands/best_plan.h"

#include <algorithm>
#include <limits>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "pipelines/checker/check_plan.h"
#include "tools/base/status_macros.h"
#include "tools/base/text_columns.h"

namespace pipelab {
namespace {

constexpr absl::Duration kMostOfPlanner = absl::Seconds(5);  // where no limit is given

bool OfOneKind(const PlanProblem& problem) {
  return problem.objective == PlanObjective::kMaxLoad || !problem.device_speeds.empty();
}

// In the problem's unit, simulated ones in seconds.
absl::StatusOr<double> Judged(const PlanProblem& problem, const Plan& plan,
                              const PlanSimulator* simulator) {
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

absl::StatusOr<Plan> PlanOf(const Planner& planner, const PlanProblem& problem,
                            const PlannerOptions& options) {
  if (planner.name != "graphpipe" || OfOneKind(problem)) {
    return MakePlan(planner.name, problem, options);
  }
  PlanProblem graph = problem;
  graph.objective = PlanObjective::kGraphBatchTime;
  return MakePlan(planner.name, graph, options);
}

}  // namespace

absl::StatusOr<BestPlan> FindBestPlan(const PlanProblem& problem, const PlannerOptions& options,
                                      const PlanSimulator* simulator) {
  const bool limited = options.time_limit < absl::InfiniteDuration();
  const absl::Time deadline = absl::Now() + options.time_limit;
  BestPlan best;
  best.plan.planner = "best";
  best.plan.objective = problem.objective;
  double shortest = std::numeric_limits<double>::infinity();
  absl::Status refused = absl::OkStatus();
  bool taken = false;
  std::vector<std::vector<std::string>> lines = {
      {"planner", "state", simulator != nullptr ? "a step, simulated [s]" : "judged",
       "search [s]"}};
  int left = static_cast<int>(Planners().size());
  for (const Planner& planner : Planners()) {
    PlannerOptions part = options;
    if (limited) {
      part.time_limit = std::max(absl::ZeroDuration(), (deadline - absl::Now()) / left--);
    } else if (planner.name != "graphpipe") {  // which ends by itself
      part.time_limit = kMostOfPlanner;
    }
    absl::StatusOr<Plan> plan = PlanOf(planner, problem, part);
    if (!plan.ok()) {
      if (refused.ok()) refused = plan.status();
      continue;
    }
    std::string figure = "no plan";
    if (plan->has_plan()) {
      const absl::StatusOr<double> time = Judged(problem, *plan, simulator);
      figure = time.ok() ? absl::StrFormat("%.6g", *time) : std::string(time.status().message());
      if (time.ok() && *time < shortest) {
        shortest = *time;
        best.plan = *plan;
      }
    }
    if (!taken && !plan->has_plan()) best.plan = *plan;
    taken = true;
    lines.push_back({std::string(planner.name), PlanStateName(plan->state), figure,
                     absl::StrFormat("%.3f", absl::ToDoubleSeconds(plan->search_time))});
  }
  if (!taken) return refused;
  best.table = AlignColumns(lines, 0, {false, false, true, true});
  return best;
}

}  // namespace pipelab
