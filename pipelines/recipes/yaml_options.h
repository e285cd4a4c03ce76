// Options of Megatron-LM in YAML: MODEL_ARGS of its functional tests and of Megatron-MoE-ModelZoo,
// and keys of Megatron-Bridge's recipes, which are option names with underscores. Private to
// recipes.
//
//   IsYaml("MODEL_ARGS:\n  --num-layers: 8\n")        // true; a command line or script is not
//   PIPELAB_ASSIGN_OR_RETURN(std::vector<ShellOption> options, ParseYamlOptions(text, "f"));
//
// Read is a flat subset: keys with scalars, in sections or not, and lists of words. true is a
// switch, false and null leave the option out, a value without quotes may have several words.
// Sections in capitals but MODEL_ARGS (ENV_VARS, METRICS) have no options. Some of
// Megatron-Bridge's keys say what an option of another name says (num_moe_experts).
//
// Errors: InvalidArgument with the line that is no such key.
#ifndef PIPELAB_PIPELINES_RECIPES_YAML_OPTIONS_H_
#define PIPELAB_PIPELINES_RECIPES_YAML_OPTIONS_H_

#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "pipelines/recipes/shell_options.h"

namespace pipelab {

// Whether all lines that are not indented are keys.
bool IsYaml(absl::string_view text);

absl::StatusOr<std::vector<ShellOption>> ParseYamlOptions(absl::string_view text,
                                                          absl::string_view what);

}  // namespace pipelab

#endif  // PIPELAB_PIPELINES_RECIPES_YAML_OPTIONS_H_
