// The recipe of another system that a command line names: --flags or --toml, on --cluster with
// --devices.
//
//   PIPELAB_ASSIGN_OR_RETURN(const RecipeInput input, ReadRecipeInput());
//   PIPELAB_ASSIGN_OR_RETURN(StepPrediction p, PredictStep(input.Model(), input.recipe.config));
//
// Errors: InvalidArgument naming the option; FailedPrecondition for what is wrong in a file.
#ifndef PIPELAB_EXPERIMENTS_COMMANDS_RECIPE_INPUT_H_
#define PIPELAB_EXPERIMENTS_COMMANDS_RECIPE_INPUT_H_

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "pipelines/recipes/recipe.h"
#include "pipelines/recipes/settings.h"
#include "pipelines/search/search.h"
#include "pipelines/step/model_on_cluster.h"
#include "pipelines/step/step_cache.h"
#include "pipelines/step/step_config.h"
#include "pipelines/step/step_model.h"

namespace pipelab {

// A system whose configurations are read and written.
struct RecipeSystem {
  const char* name;    // "Megatron-LM"
  const char* format;  // "megatron", of `schedule --format`
  absl::StatusOr<Recipe> (*read)(absl::string_view text, absl::string_view what, int64_t devices);
  absl::StatusOr<Settings> (*write)(const Recipe& recipe);
  // SpaceOf, but for the state that follows from what is divided.
  SearchRequest (*space)(const Recipe& recipe);
  // How far measured runs are from predictions (docs/modern_models.md); empty if nothing is known.
  const char* bias;
};

absl::Span<const RecipeSystem> RecipeSystems();

// Messages have no parts where ranks of a tensor-parallel group hold different tokens.
StepConfig WithoutNeedlessKeys(StepConfig config);

// [layer] The stage of the pipeline that it is in.
absl::StatusOr<std::vector<int>> StagesOf(const StepConfig& config, StepCache* cache);

// The recipe with another configuration, and the layers of its stages as they are cut.
absl::StatusOr<Recipe> RecipeWith(const Recipe& recipe, StepConfig config, StepCache* cache);

// Writes the configuration in the system's options and returns what the system runs of them. An
// error if the options cannot say it.
absl::StatusOr<StepConfig> ExportAndRead(const RecipeSystem& system, const Recipe& recipe,
                                         const StepConfig& config, StepCache* cache);

// The request has what the system can run near the recipe: methods, recomputation and sequence
// parallelism. Each method has the state that the system keeps of a parameter where it divides so.
SearchRequest SpaceOf(const RecipeSystem& system, const Recipe& recipe, StepCache* cache);

// InvalidArgument lists the formats.
absl::StatusOr<const RecipeSystem*> FindRecipeSystem(absl::string_view format);

struct RecipeInput {
  const RecipeSystem* system = nullptr;
  std::string what;  // "--flags=run.sh"
  Recipe recipe;
  std::unique_ptr<ModelOnCluster> on;

  StepModel Model() const;
};

absl::StatusOr<RecipeInput> ReadRecipeInput();

}  // namespace pipelab

#endif  // PIPELAB_EXPERIMENTS_COMMANDS_RECIPE_INPUT_H_
