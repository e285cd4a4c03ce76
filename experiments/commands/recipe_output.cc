#include "experiments/commands/recipe_output.h"

#include <cstdio>
#include <memory>
#include <utility>
#include <vector>

#include "absl/flags/declare.h"
#include "absl/flags/flag.h"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "experiments/commands/recipe_input.h"
#include "experiments/commands/step_input.h"
#include "models/files/model_file.h"
#include "models/specs/megatron_kernels.h"
#include "pipelines/recipes/deepspeed_json.h"
#include "pipelines/recipes/recipe.h"
#include "pipelines/step/model_on_cluster.h"
#include "pipelines/step/step.h"
#include "tools/base/json.h"
#include "tools/base/status_macros.h"

ABSL_DECLARE_FLAG(std::string, model);  // step_input.cc
ABSL_DECLARE_FLAG(std::string, dtype);

namespace pipelab {
namespace {

constexpr absl::string_view kDeepSpeed = "deepspeed";

absl::StatusOr<Recipe> RecipeOf(const StepConfig& config) {
  Recipe recipe;
  const std::string word = config.model.empty() ? absl::GetFlag(FLAGS_model) : config.model;
  PIPELAB_ASSIGN_OR_RETURN(const std::unique_ptr<ModelOnCluster> on, LoadModelOnCluster(config));
  PIPELAB_ASSIGN_OR_RETURN(recipe.model, FindLanguageModel("--model", word));
  if (recipe.model.post_norms) {
    return absl::InvalidArgumentError(absl::StrCat(
        "--model=", word,
        ": has norms behind half blocks, which no recipe can be written of; gemma-2b has none"));
  }
  PIPELAB_ASSIGN_OR_RETURN(const Step step, BuildStep(on->step(), config));
  recipe.config = step.config;
  recipe.loss = LossImplementationOf(on->model().graph).value_or(LossImplementation::kFused);
  // Without a machine, what such runs compute with.
  const bool chosen = on->step().cluster != nullptr || !absl::GetFlag(FLAGS_dtype).empty();
  if (chosen) recipe.type = on->step().type;
  const bool gathers_blocks = recipe.config.pipeline == 1;
  std::vector<MegatronStage> stages = StagesOfTransformers({recipe.model.layers});
  if (!gathers_blocks) {
    PIPELAB_ASSIGN_OR_RETURN(stages,
                             MegatronStagesOf(on->model().graph, step.partition.stage_of_layer));
  }
  PIPELAB_RETURN_IF_ERROR(SetStages(std::move(stages), &recipe));
  return recipe;
}

void PrintNotes(const std::vector<std::string>& notes) {
  for (const std::string& note : notes) std::fprintf(stderr, "Note: %s.\n", note.c_str());
}

absl::StatusOr<std::string> TextOf(const Recipe& recipe, const std::string& format) {
  if (format == kDeepSpeed) {
    PIPELAB_ASSIGN_OR_RETURN(const DeepSpeedConfig config, DeepSpeedJson(recipe));
    PrintNotes(config.notes);
    return DumpJson(config.json);
  }
  PIPELAB_ASSIGN_OR_RETURN(const RecipeSystem* system, FindRecipeSystem(format));
  PIPELAB_ASSIGN_OR_RETURN(const Settings settings, system->write(recipe));
  PrintNotes(settings.notes());
  return settings.Text();
}

}  // namespace

bool IsRecipeFormat(absl::string_view format) {
  return format == kDeepSpeed || FindRecipeSystem(format).ok();
}

absl::StatusOr<std::string> RecipeInFormat(const StepConfig& config, const std::string& format) {
  PIPELAB_ASSIGN_OR_RETURN(const Recipe recipe, RecipeOf(config));
  absl::StatusOr<std::string> text = TextOf(recipe, format);
  if (text.ok()) return text;
  return absl::InvalidArgumentError(
      absl::StrCat("--format=", format, ": ", text.status().message()));
}

}  // namespace pipelab
