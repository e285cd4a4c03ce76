// pipelab plan: what a planner makes of a network, or a partitioner of a graph.
#include <cmath>
#include <memory>
#include <string>
#include <utility>

#include "absl/flags/declare.h"
#include "absl/flags/flag.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/time/time.h"
#include "absl/types/optional.h"
#include "experiments/commands/command.h"
#include "experiments/commands/plan_problem_flags.h"
#include "experiments/commands/time_limit.h"
#include "experiments/flags/output.h"
#include "experiments/plan_commands/best_plan.h"
#include "experiments/plan_commands/graph_parts.h"
#include "experiments/plan_commands/plan_commands.h"
#include "experiments/plan_commands/plan_timeline.h"
#include "pipelines/checker/check_plan.h"
#include "pipelines/planners/plan_json.h"
#include "pipelines/planners/planners.h"
#include "tools/base/status_macros.h"
#include "tools/base/text_columns.h"

ABSL_DECLARE_FLAG(std::string, graph);     // graph_parts.cc
ABSL_DECLARE_FLAG(std::string, model);     // run_flags.cc
ABSL_DECLARE_FLAG(std::string, json_out);  // simulate_command.cc
ABSL_FLAG(std::string, planner, "best",
          "uniform, gpipe, chain, max_load, pipedream, dapple, piper, graphpipe, bapipe or "
          "terapipe; best: the plan with the shortest batch of all of them, simulated for --model");
ABSL_FLAG(int, stages, 0, "stages of uniform, gpipe and chain; 0: one per device, chain: the best");
ABSL_FLAG(int64_t, stage_micro_batch_size, 0,
          "for graphpipe: samples per micro-batch in every stage; 0: each stage has its own size");

ABSL_FLAG(std::string, objective, "",
          "step: the shortest simulated step of --model, for any planner; for graphpipe also "
          "graph_batch_time (counts fill and drain, the default for --model) and graph_stage_time "
          "(the default for inputs of other planners)");

namespace pipelab {
namespace {

// True: plans are to be judged by the simulated step.
absl::StatusOr<bool> SetObjective(PlanProblem* problem) {
  const std::string name = absl::GetFlag(FLAGS_objective);
  const std::string planner = absl::GetFlag(FLAGS_planner);
  const bool model = !absl::GetFlag(FLAGS_model).empty();
  if (name.empty()) {
    if (planner == "graphpipe" && model) problem->objective = PlanObjective::kGraphBatchTime;
    return planner == "best";
  }
  if (name == "step") {
    if (model) return true;
    return absl::InvalidArgumentError(
        "--objective=step: requires --model, whose step is simulated");
  }
  for (const PlanObjective objective :
       {PlanObjective::kGraphBatchTime, PlanObjective::kGraphStageTime}) {
    if (name != PlanObjectiveName(objective)) continue;
    if (planner != "graphpipe") {
      return absl::InvalidArgumentError(absl::StrCat("--objective=", name,
                                                     ": is one of graphpipe; --planner=", planner,
                                                     " has its own, and step"));
    }
    problem->objective = objective;
    return false;
  }
  return absl::InvalidArgumentError(
      absl::StrCat("--objective=", name, ": must be step, graph_batch_time or graph_stage_time"));
}

// "0-3,5": ids as they are, ranges of numbers shortened.
std::string LayersText(const PlanStage& stage, const PlanProblem& problem) {
  std::vector<std::string> parts;
  for (size_t i = 0; i < stage.layers.size();) {
    size_t end = i + 1;
    while (end < stage.layers.size() && stage.layers[end] == stage.layers[end - 1] + 1) ++end;
    const std::string& first = problem.operators[stage.layers[i]].id;
    const std::string& last = problem.operators[stage.layers[end - 1]].id;
    parts.push_back(end - i < 3 ? first : absl::StrCat(first, " .. ", last));
    if (end - i == 2) parts.push_back(last);
    i = end;
  }
  return absl::StrJoin(parts, ", ");
}

std::string PlanTable(const Plan& plan, const PlanProblem& problem, const PlanReport& report) {
  std::vector<std::vector<std::string>> lines = {
      {"stage", "copies", "tensor", "time", "memory", "layers", ""},
      {"", "", "", problem.time_unit, "GiB", "", ""}};
  for (size_t s = 0; s < plan.stages.size(); ++s) {
    const PlanStage& stage = plan.stages[s];
    int recompute = 0;
    for (size_t i = 0; i < stage.layers.size(); ++i) {
      recompute +=
          problem.operators[stage.layers[i]].variants.at(stage.tensor)[stage.variants[i]].recompute;
    }
    lines.push_back({absl::StrCat(s), absl::StrCat(stage.data), absl::StrCat(stage.tensor),
                     absl::StrFormat("%.6g", report.stage_times[s]),
                     absl::StrFormat("%.3f", report.stage_bytes[s] / (1 << 30)),
                     absl::StrCat(stage.layers.size()),
                     absl::StrCat(LayersText(stage, problem),
                                  recompute > 0 ? absl::StrCat(" (", recompute, " recompute)") : "",
                                  stage.on_processor ? " (processor)" : "")});
  }
  return AlignColumns(lines, 2, {true, true, true, true, true, true, false});
}

// How far the plan is above its bound, and what makes that a bound.
std::string Gap(const Plan& plan) {
  const double gap = plan.lower_bound > 0 ? plan.value / plan.lower_bound - 1 : 0;
  return absl::StrFormat("gap %.2f %%%s%s", 100 * gap, plan.bound_reason.empty() ? "" : ": ",
                         plan.bound_reason);
}

absl::StatusOr<std::string> PlanText(const Plan& plan, const PlanProblem& problem) {
  const std::string unit = ObjectiveUnit(problem, plan.objective);
  std::string text = absl::StrFormat("%s: %s, in %.4f s\n", plan.planner, PlanStateName(plan.state),
                                     absl::ToDoubleSeconds(plan.search_time));
  if (!plan.has_plan()) {
    return absl::StrFormat("%sno plan; lower bound %.9g %s\n", text, plan.lower_bound, unit);
  }
  PIPELAB_ASSIGN_OR_RETURN(const PlanReport report, CheckPlan(problem, plan));
  absl::StrAppendFormat(&text,
                        "\n%s\n%s %.9g %s; lower bound %.9g (%s; work over devices %.9g, "
                        "largest operator %.9g)\n",
                        PlanTable(plan, problem, report), PlanObjectiveName(plan.objective),
                        plan.value, unit, plan.lower_bound, Gap(plan), report.work_bound,
                        report.operator_bound);
  absl::StrAppendFormat(&text,
                        "a batch of %d with fill and drain: %.6g; %d devices of %d; "
                        "fullest device %.3f GiB\n",
                        problem.micro_batches, report.step_time, report.devices, problem.devices,
                        report.peak_bytes() / (1 << 30));
  return text;
}

}  // namespace

absl::Status PlanCommand(const Words& words) {
  PIPELAB_RETURN_IF_ERROR(CheckOptionsAlone(words, "plan"));
  if (!absl::GetFlag(FLAGS_graph).empty()) return PlanGraphParts();
  PlannerOptions options;
  PIPELAB_ASSIGN_OR_RETURN(options.time_limit, TimeLimitFromFlag(absl::InfiniteDuration()));
  options.stages = absl::GetFlag(FLAGS_stages);
  options.micro_batch_size = absl::GetFlag(FLAGS_stage_micro_batch_size);
  const std::string planner = absl::GetFlag(FLAGS_planner);
  std::unique_ptr<ModelOnCluster> on;
  PIPELAB_ASSIGN_OR_RETURN(PlanProblem problem, PlanProblemFromFlags(&on));
  PIPELAB_ASSIGN_OR_RETURN(const bool judged, SetObjective(&problem));
  absl::optional<PlanSimulator> simulator;
  if (on != nullptr) simulator.emplace(problem, std::move(on));
  BestPlan best;
  if (judged) {
    PIPELAB_ASSIGN_OR_RETURN(best, FindBestPlan(planner, problem, options,
                                                simulator.has_value() ? &*simulator : nullptr));
  } else {
    PIPELAB_ASSIGN_OR_RETURN(best.plan, MakePlan(planner, problem, options));
  }
  const Plan& plan = best.plan;
  const std::string json = absl::GetFlag(FLAGS_json_out);
  std::string text;
  if (json != "-") {
    PIPELAB_ASSIGN_OR_RETURN(text, PlanText(plan, problem));
    if (!best.table.empty()) text = absl::StrCat(best.table, "\n", text);
    if (plan.has_plan() && simulator.has_value()) absl::StrAppend(&text, simulator->Timeline(plan));
  }
  if (!json.empty()) {
    PIPELAB_RETURN_IF_ERROR(WriteOutput("--json_out", json, PlanToJson(plan, problem)));
  }
  return json == "-" ? absl::OkStatus() : WriteOutput("stdout", "-", text);
}

}  // namespace pipelab
