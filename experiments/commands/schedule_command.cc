// pipelab schedule: one form of a schedule in, another out.
#include <memory>
#include <utility>

#include "absl/flags/declare.h"
#include "absl/flags/flag.h"
#include "absl/strings/str_cat.h"
#include "experiments/commands/command.h"
#include "experiments/commands/plan_input.h"
#include "experiments/commands/recipe_output.h"
#include "experiments/commands/schedule_input.h"
#include "experiments/commands/step_input.h"
#include "experiments/flags/output.h"
#include "pipelines/planners/plan_export.h"
#include "pipelines/step/megatron_layout.h"
#include "pipelines/step/model_on_cluster.h"
#include "pipelines/step/step.h"
#include "tools/base/status_macros.h"

ABSL_DECLARE_FLAG(std::string, model);  // step_input.cc
ABSL_FLAG(std::string, format, "text",
          "csv, text or json; with a language model also megatron (Megatron-LM's command line), "
          "torchtitan (its TOML) or deepspeed (its JSON); with --plan also megatron: Megatron-LM's "
          "layout of stages");
ABSL_FLAG(std::string, out, "-", "file of the schedule; -: stdout");

namespace pipelab {
namespace {

absl::StatusOr<std::string> PlanInFormat(const Words& words, const std::string& format) {
  PIPELAB_ASSIGN_OR_RETURN(const PlanInput input, ReadPlanInput(words));
  absl::StatusOr<std::string> text;
  if (format == "megatron") {
    const auto stages = MegatronStagesOf(input.graph(), input.pipeline.partition.stage_of_layer);
    if (stages.ok()) return FormatMegatronLayout(*stages) + "\n";
    text = stages.status();
  } else if (format == "csv") {
    text = PyTorchCsv(input.pipeline);
  } else {
    return InFormat(input.pipeline.schedule, format);
  }
  if (text.ok()) return text;
  return absl::InvalidArgumentError(
      absl::StrCat("--format=", format, ": ", text.status().message()));
}

absl::StatusOr<std::string> ScheduleInFormat(const Words& words, const std::string& format) {
  PIPELAB_RETURN_IF_ERROR(CheckNoPlanFlags(/*takes_model=*/!absl::GetFlag(FLAGS_model).empty()));
  PIPELAB_ASSIGN_OR_RETURN(ScheduleInput input, ReadScheduleInput(words));
  PIPELAB_RETURN_IF_ERROR(CheckInput(input));
  // With a model, the order is made for its times.
  if (!input.own && (!absl::GetFlag(FLAGS_model).empty() || !input.config.model.empty())) {
    PIPELAB_ASSIGN_OR_RETURN(const std::unique_ptr<ModelOnCluster> on,
                             LoadModelOnCluster(input.config));
    PIPELAB_ASSIGN_OR_RETURN(Step step, BuildStep(on->step(), input.config));
    input.schedule = std::move(step.program.schedule);
  }
  PrintSkippedNote(input);
  if (IsRecipeFormat(format)) {
    if (!input.own) return RecipeInFormat(input.config, format);
    return absl::InvalidArgumentError(absl::StrCat("--format=", format, ": ", input.source,
                                                   " is a schedule of its own; give a scheme"));
  }
  const absl::StatusOr<std::string> text = InFormat(input.schedule, format);
  if (text.ok() || format != "csv") return text;
  return absl::InvalidArgumentError(absl::StrCat("--format=csv: ", text.status().message()));
}

}  // namespace

absl::Status ScheduleCommand(const Words& words) {
  const std::string format = absl::GetFlag(FLAGS_format);
  PIPELAB_ASSIGN_OR_RETURN(const std::string text, PlanIsGiven() ? PlanInFormat(words, format)
                                                                 : ScheduleInFormat(words, format));
  return WriteOutput("--out", absl::GetFlag(FLAGS_out), text);
}

}  // namespace pipelab
