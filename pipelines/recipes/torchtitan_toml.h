// torchtitan's TOML as a recipe, and back (torchtitan/config/job_config.py of 2025).
//
//   PIPELAB_ASSIGN_OR_RETURN(Recipe r,
//                            ReadTorchtitanToml(text, "--toml=run.toml", /*devices=*/64));
//   PIPELAB_ASSIGN_OR_RETURN(Settings s, TorchtitanSettings(r));
//   s.Text();                      // "[model]\nname = \"llama3\"\n..."
//
// Read are [model], [training], [parallelism], [activation_checkpoint] and [float8], with
// torchtitan's defaults; other sections change neither shapes nor times nor memory and are passed
// over. Layers are divided over stages as torchtitan divides them.
//
// FSDP (data_parallel_shard_degree) is sharding=fully, a block at a time, without a pipeline; with
// one weights stay whole until the step's end, which is sharding=gradients.
//
// Errors: InvalidArgument, "--toml=run.toml: training.seq_len: ...".
#ifndef PIPELAB_PIPELINES_RECIPES_TORCHTITAN_TOML_H_
#define PIPELAB_PIPELINES_RECIPES_TORCHTITAN_TOML_H_

#include <cstdint>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "pipelines/recipes/recipe.h"
#include "pipelines/recipes/settings.h"

namespace pipelab {

// `devices` 0: those that the degrees say.
absl::StatusOr<Recipe> ReadTorchtitanToml(absl::string_view text, absl::string_view what,
                                          int64_t devices);

// InvalidArgument naming what torchtitan has no words for.
absl::StatusOr<Settings> TorchtitanSettings(const Recipe& recipe);

// Schemes that torchtitan runs, with and without a pipeline.
std::vector<std::string> TorchtitanSchemes();

}  // namespace pipelab

#endif  // PIPELAB_PIPELINES_RECIPES_TORCHTITAN_TOML_H_
