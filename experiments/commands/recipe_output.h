// A configuration of a language model as another system's: --format=megatron, torchtitan or
// deepspeed.
//
//   PIPELAB_ASSIGN_OR_RETURN(const std::string text, RecipeInFormat(config, "megatron"));
//
// Stages are cut as everywhere. What the system does otherwise than the configuration says is a
// line on stderr each.
#ifndef PIPELAB_EXPERIMENTS_COMMANDS_RECIPE_OUTPUT_H_
#define PIPELAB_EXPERIMENTS_COMMANDS_RECIPE_OUTPUT_H_

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "pipelines/step/step_config.h"

namespace pipelab {

bool IsRecipeFormat(absl::string_view format);

// InvalidArgument naming the format and what the system has no words for.
absl::StatusOr<std::string> RecipeInFormat(const StepConfig& config, const std::string& format);

}  // namespace pipelab

#endif  // PIPELAB_EXPERIMENTS_COMMANDS_RECIPE_OUTPUT_H_
