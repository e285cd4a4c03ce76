// `[ ... ]`, `test` and `[[ ... ]]` of a shell. Private to recipes.
//
//   EvaluateShellCondition({{"-n"}, {""}, {"||"}, {"8"}, {"-gt"}, {"4"}}, &doubt);   // true
//
// Not known are files, and what depends on parts of words that are not known.
#ifndef PIPELAB_PIPELINES_RECIPES_SHELL_CONDITIONS_H_
#define PIPELAB_PIPELINES_RECIPES_SHELL_CONDITIONS_H_

#include <string>
#include <vector>

#include "absl/types/optional.h"
#include "pipelines/recipes/shell_values.h"

namespace pipelab {

struct ConditionWord {
  std::string value;
  std::string pattern = value;  // as the right side of ==
};

// nullopt, and all but the place in `doubt`: the condition is not known. A false one may be none.
absl::optional<bool> EvaluateShellCondition(const std::vector<ConditionWord>& words,
                                            ShellDoubt* doubt);

}  // namespace pipelab

#endif  // PIPELAB_PIPELINES_RECIPES_SHELL_CONDITIONS_H_
