#include "pipelines/planners/planners.h"

#include <algorithm>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "pipelines/planners/plan_costs.h"
#include "tools/base/did_you_mean.h"
#include "tools/base/status_macros.h"

namespace pipelab {

absl::Span<const Planner> Planners() {
  // Name, what it does, mixed speeds, stages, samples.
  static constexpr Planner kPlanners[] = {
      {"uniform", "equal numbers of layers, one device per stage", &UniformPlan, false, true},
      {"graphpipe", "stages that form a DAG, each with copies and micro-batches of its own",
       &GraphPipePlan, false, false, true},
      {"gpipe", "layers in line, the least variance of the stages' compute times", &GpipePlan,
       false, true},
      {"chain", "exact: layers in line, one device per stage, the least largest stage", &ChainPlan,
       false, true},
      {"max_load", "exact: the smallest largest load of accelerators and processors", &MaxLoadPlan},
      {"pipedream",
       "exact: stages with copies on each network level, communication hidden behind compute",
       &PipeDreamPlan},
      {"piper",
       "exact: sequences of convex stages, each with copies, a tensor degree and recomputing",
       &PiperPlan},
      {"dapple", "consecutive stages with copies, the shortest synchronous batch", &DapplePlan,
       true},
      {"bapipe", "consecutive stages on devices of any speeds, and the schedule", &BaPipePlan,
       true},
      {"terapipe", "exact: slices of samples and tokens through stages of layers in line",
       &TeraPipePlan, false, true},
  };
  return kPlanners;
}

absl::StatusOr<Plan> MakePlan(absl::string_view name, const PlanProblem& problem,
                              const PlannerOptions& options) {
  for (const Planner& planner : Planners()) {
    if (planner.name != name) continue;
    if (!problem.device_speeds.empty() && !planner.mixed_speeds) {
      return absl::InvalidArgumentError(
          absl::StrCat("--planner=", name, ": it takes all devices to be as fast as one another"));
    }
    if (options.stages != 0 && !planner.stages) {
      return absl::InvalidArgumentError(absl::StrCat(
          "--stages=", options.stages, ": --planner=", name, " chooses their number itself"));
    }
    if (options.micro_batch_size != 0 && !planner.micro_batch_size) {
      return absl::InvalidArgumentError(
          absl::StrCat("--stage_micro_batch_size=", options.micro_batch_size,
                       ": for --planner=graphpipe alone, not ", name));
    }
    const absl::Time start = absl::Now();
    PIPELAB_ASSIGN_OR_RETURN(Plan plan, planner.plan(problem, options));
    plan.search_time = absl::Now() - start;
    plan.planner = std::string(name);
    plan.peak_bytes = PeakBytes(problem, plan.stages);
    return plan;
  }
  std::vector<absl::string_view> names;
  for (const Planner& p : Planners()) names.push_back(p.name);
  return absl::InvalidArgumentError(
      absl::StrCat("--planner=", name, ": no such planner", NearestOrAll(name, names)));
}

absl::StatusOr<int> NumStages(const PlanProblem& problem, const PlannerOptions& options,
                              int num_groups) {
  const int64_t most = std::min<int64_t>(problem.devices, num_groups);
  if (options.stages == 0) return static_cast<int>(most);
  if (options.stages >= 1 && options.stages <= most) return options.stages;
  return absl::InvalidArgumentError(absl::StrCat("--stages=", options.stages,
                                                 ": must be from 1 to ", most, " (", num_groups,
                                                 " layers, ", problem.devices, " devices)"));
}

}  // namespace pipelab
