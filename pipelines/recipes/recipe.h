// A training run as another system's configuration has it: the model, the step, and what of it is
// priced otherwise than the system would run it.
//
//   PIPELAB_ASSIGN_OR_RETURN(Recipe r, ReadMegatronFlags(text, "--flags=run.sh", /*devices=*/64));
//   PIPELAB_ASSIGN_OR_RETURN(ModelGraph graph, RecipeGraph(r));   // Megatron-LM's kernels
//   PIPELAB_ASSIGN_OR_RETURN(Settings s, MegatronSettings(r));    // and back
//   s.Text();
//
// What a system has and no model here is refused by name, with the nearest that would do. What is
// priced otherwise is in `assumptions`, a line each; what the step is priced without, in
// `not_priced`.
#ifndef PIPELAB_PIPELINES_RECIPES_RECIPE_H_
#define PIPELAB_PIPELINES_RECIPES_RECIPE_H_

#include <cstdint>
#include <initializer_list>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "models/graph/layer_spec.h"
#include "models/specs/launched_kernels.h"
#include "models/specs/megatron_kernels.h"
#include "models/zoo/gpt.h"
#include "pipelines/cluster/device.h"
#include "pipelines/cost/state_numbers.h"
#include "pipelines/recipes/settings.h"
#include "pipelines/step/megatron_layout.h"
#include "pipelines/step/step_config.h"

namespace pipelab {

struct Recipe {
  GptConfig model;
  AttentionImplementation attention = AttentionImplementation::kFused;
  LossImplementation loss = LossImplementation::kFused;
  LaunchedKernels kernels;
  StepConfig config;                  // with the layout of `stages`
  std::vector<MegatronStage> stages;  // what each has
  NumberType type = NumberType::kBf16;
  int optimizer_tensors = 2;
  std::vector<std::string> assumptions;
  // Options that would change times or memory, "--name: what is priced in its place", and those
  // that nobody knows here, "--name: unknown; did you mean --other?".
  std::vector<std::string> not_priced, unknown;
  std::vector<std::string> passed_over;  // names of those that change neither
};

// What is in a recipe and the other system lacks.
template <typename... Parts>
absl::Status RecipeError(const Parts&... parts) {
  return absl::InvalidArgumentError(absl::StrCat(parts...));
}

// The recipe; where it cannot be read, its error with what is unknown behind it, which may be why.
absl::StatusOr<Recipe> WithUnknown(const std::vector<std::string>& unknown,
                                   absl::StatusOr<Recipe> recipe);

// Takes the stages, and the layout for them; heads for further tokens that no stage has come to the
// loss. InvalidArgument for empty stages.
absl::Status SetStages(std::vector<MegatronStage> stages, Recipe* recipe);

// As block_layout.h has it, and the stages for it.
absl::Status GatherByBlock(Recipe* recipe);

// Layers of these sizes with Megatron-LM's kernels and what they keep (megatron_graph.h).
absl::StatusOr<ModelGraph> RecipeGraph(const Recipe& recipe);

// Whether some block has experts, and how wide each of them is.
bool HasExperts(const GptConfig& model);
int64_t ExpertWidth(const GptConfig& model);

// The model's sizes in one line.
std::string ModelText(const GptConfig& model);

// A note where `system` keeps other bytes of a parameter than the configuration does.
void NoteState(StateNumbers state, StateNumbers of_system, absl::string_view system, Settings* s);

// Refuses, by the key's name, what is in the configuration and would be lost: all keys but those
// that each system has words for and those that this one `writes`.
absl::Status CheckExportable(const StepConfig& config, absl::string_view system,
                             std::initializer_list<absl::string_view> writes);

}  // namespace pipelab

#endif  // PIPELAB_PIPELINES_RECIPES_RECIPE_H_
