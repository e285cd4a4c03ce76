#include "experiments/commands/plan_input.h"

#include <algorithm>
#include <utility>

#include "absl/flags/commandlineflag.h"
#include "absl/flags/declare.h"
#include "absl/flags/flag.h"
#include "absl/flags/reflection.h"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "experiments/commands/run_flags.h"
#include "experiments/simulate/user_file.h"
#include "models/zoo/layer_groups.h"
#include "pipelines/planners/model_problem.h"
#include "pipelines/planners/plan_json.h"
#include "pipelines/planners/plan_point.h"
#include "tools/base/status_macros.h"

ABSL_FLAG(std::string, plan, "",
          "a plan of --model, as `pipelab plan` writes it: stages, devices and sizes of "
          "micro-batches are the plan's; -: stdin");
ABSL_FLAG(bool, sequential, false,
          "with --plan: each stage waits for the one before it, even if it does not use its "
          "output, as in a sequential pipeline");
ABSL_DECLARE_FLAG(int64_t, micro_batch_size);
ABSL_DECLARE_FLAG(int, micro_batches);
ABSL_DECLARE_FLAG(int, group_size);
ABSL_DECLARE_FLAG(std::string, model);
ABSL_DECLARE_FLAG(bool, overlap);

namespace pipelab {
namespace {

// What a plan says itself.
constexpr const char* kOfSchemes[] = {"csv",
                                      "json",
                                      "text",
                                      "devices",
                                      "virtual_stages",
                                      "recompute",
                                      "replicas",
                                      "concatenation",
                                      "update_interval",
                                      "data_parallel",
                                      "context_parallel",
                                      "context_exchange",
                                      "expert_parallel",
                                      "slices",
                                      "edges",
                                      "layout",
                                      "stage_devices",
                                      "stage_micro_batches",
                                      "execution",
                                      "ranks"};

absl::Status CheckPlanFlags(const std::vector<std::string>& words) {
  const std::string plan = absl::StrCat("--plan=", absl::GetFlag(FLAGS_plan));
  if (words.size() > 1) {
    return absl::InvalidArgumentError(
        absl::StrCat("'", words[1], "': ", plan, " gives the schedule; give one of them"));
  }
  for (const char* name : kOfSchemes) {
    const absl::CommandLineFlag* flag = absl::FindCommandLineFlag(name);
    if (flag == nullptr || flag->CurrentValue() == flag->DefaultValue()) continue;
    return absl::InvalidArgumentError(
        absl::StrCat("--", name, "=", flag->CurrentValue(), ": ", plan, " gives it"));
  }
  if (!absl::GetFlag(FLAGS_model).empty()) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(plan, ": requires --model"));
}

// Layers are named one by one, or by group.
struct OfModel {
  PlanProblem problem;
  Plan plan;
};
absl::StatusOr<OfModel> Parse(const std::string& text, const std::string& source,
                              const ModelGraph& graph) {
  OfModel layers{ModelOperators(graph, {}), {}};
  absl::StatusOr<Plan> plan = ParsePlan(text, source, layers.problem);
  if (plan.ok()) {
    layers.plan = *std::move(plan);
    return layers;
  }
  for (GroupedModel (*group)(ModelGraph) : {&GroupForPlanning, &GroupByName}) {
    OfModel groups{ModelOperators(graph, group(graph).group_of_layer), {}};
    absl::StatusOr<Plan> again = ParsePlan(text, source, groups.problem);
    if (!again.ok()) continue;
    groups.plan = *std::move(again);
    return groups;
  }
  return absl::FailedPreconditionError(plan.status().message());
}

absl::StatusOr<PlanPipelineOptions> SizesFromFlags(int64_t micro_batch_size) {
  if (micro_batch_size < 1) {
    return absl::InvalidArgumentError(
        absl::StrCat("--micro_batch_size=", micro_batch_size, ": must be at least 1"));
  }
  const int micro_batches = absl::GetFlag(FLAGS_micro_batches);
  constexpr int64_t kMost = int64_t{1} << 40;
  if (micro_batches < 1 || micro_batch_size > kMost / micro_batches) {
    return absl::InvalidArgumentError(
        absl::StrCat("--micro_batches=", micro_batches, ": must be at least 1, and at most ",
                     kMost / micro_batch_size, " with --micro_batch_size=", micro_batch_size));
  }
  PlanPipelineOptions sizes;
  sizes.micro_batch_size = micro_batch_size;
  sizes.batch_samples = micro_batch_size * micro_batches;
  sizes.kfkb = absl::GetFlag(FLAGS_group_size);
  sizes.chain = absl::GetFlag(FLAGS_sequential);
  return sizes;
}

}  // namespace

bool PlanIsGiven() { return !absl::GetFlag(FLAGS_plan).empty(); }

absl::Status CheckNoPlanFlags(bool takes_model) {
  const auto error = [](const auto&... flag) {
    return absl::InvalidArgumentError(absl::StrCat(flag..., ": requires --plan"));
  };
  if (absl::GetFlag(FLAGS_sequential)) return error("--sequential=true");
  if (takes_model) return absl::OkStatus();
  for (const char* name : {"model", "model_time_unit", "micro_batch_size"}) {
    const absl::CommandLineFlag* flag = absl::FindCommandLineFlag(name);
    if (flag == nullptr || flag->CurrentValue() == flag->DefaultValue()) continue;
    return error("--", name, "=", flag->CurrentValue());
  }
  return absl::OkStatus();
}

absl::StatusOr<PlanInput> ReadPlanInput(const std::vector<std::string>& words) {
  PIPELAB_RETURN_IF_ERROR(CheckPlanFlags(words));
  PlanInput input;
  const std::string path = absl::GetFlag(FLAGS_plan);
  input.source = absl::StrCat("--plan=", path);
  PIPELAB_ASSIGN_OR_RETURN(input.on, LoadModelOnCluster(StepConfig()));
  PIPELAB_ASSIGN_OR_RETURN(const PlanPipelineOptions sizes,
                           SizesFromFlags(absl::GetFlag(FLAGS_micro_batch_size)));
  PIPELAB_ASSIGN_OR_RETURN(const std::string text, ReadUserFile("--plan", path));
  PIPELAB_ASSIGN_OR_RETURN(const OfModel of_model, Parse(text, input.source, input.graph()));
  absl::StatusOr<PlanPipeline> pipeline =
      MakePlanPipeline(input.graph(), of_model.problem, of_model.plan, sizes);
  if (!pipeline.ok()) {
    return absl::FailedPreconditionError(
        absl::StrCat(input.source, ": ", pipeline.status().message()));
  }
  input.pipeline = *std::move(pipeline);
  return input;
}

absl::StatusOr<SimulatedRun> RunSimulatedPlan(const PlanInput& input) {
  PIPELAB_RETURN_IF_ERROR(CheckNoTimesByHand());
  const StepModel& on = input.on->step();
  PIPELAB_RETURN_IF_ERROR(CheckHasTimes(*input.on));
  PIPELAB_RETURN_IF_ERROR(FaultOfModel(
      CheckCountable(on, absl::GetFlag(FLAGS_micro_batch_size), absl::GetFlag(FLAGS_micro_batches)),
      StepConfig()));
  const auto predict = [&input](const StepModel& model) {
    return SimulatePlan(input.on->model(), input.pipeline,
                        {model.cluster, model.type, absl::GetFlag(FLAGS_overlap)});
  };
  absl::StatusOr<StepPrediction> prediction = predict(on);
  if (!prediction.ok()) return FaultOfModel(prediction.status(), StepConfig());
  SimulatedRun run = RunOfStep(*std::move(prediction));
  PIPELAB_ASSIGN_OR_RETURN(run.note, CalibrationNote(on, run.prediction.step_time, predict));
  return run;
}

}  // namespace pipelab
