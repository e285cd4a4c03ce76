// Megatron-LM's command line as a recipe, and back (megatron/training/arguments.py of 2025).
//
//   PIPELAB_ASSIGN_OR_RETURN(Recipe r, ReadMegatronFlags(text, "--flags=run.sh", /*devices=*/64));
//   r.config.ToString();           // "interleaved:P=4,T=8,D=2,V=5,..."
//   PIPELAB_ASSIGN_OR_RETURN(Settings s, MegatronSettings(r));
//   s.Text();                      // "--num-layers 32\n..."
//
// YAML with these options is read, too (yaml_options.h). Read is what sets shapes, parallelism,
// batch, number types and recomputation, with Megatron-LM's defaults and what it requires of them.
// Recipe has lists of the options without influence, of those that would have some and are priced
// without, and of those that are unknown; those that no model here has are refused.
//
// Errors: InvalidArgument, "--flags=run.sh: --num-layers 30: ... ; nearest: --num-layers 32".
#ifndef PIPELAB_PIPELINES_RECIPES_MEGATRON_FLAGS_H_
#define PIPELAB_PIPELINES_RECIPES_MEGATRON_FLAGS_H_

#include <cstdint>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "pipelines/recipes/recipe.h"
#include "pipelines/recipes/settings.h"
#include "pipelines/recipes/shell_options.h"

namespace pipelab {

// `devices` 0: as many as torchrun is told, --nnodes times --nproc-per-node. `choice` is for
// scripts.
absl::StatusOr<Recipe> ReadMegatronFlags(absl::string_view text, absl::string_view what,
                                         int64_t devices, const ScriptChoice& choice = {});

// InvalidArgument naming what Megatron-LM has no words for.
absl::StatusOr<Settings> MegatronSettings(const Recipe& recipe);

// Megatron-LM's own division: equal numbers of Transformer layers in all stages. InvalidArgument
// where they do not divide.
absl::StatusOr<std::vector<MegatronStage>> EvenStages(int64_t layers, int64_t stages);

}  // namespace pipelab

#endif  // PIPELAB_PIPELINES_RECIPES_MEGATRON_FLAGS_H_
