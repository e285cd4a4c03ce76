// The options of a command line, or of a shell script that has them in arrays and variables.
//
//   PIPELAB_ASSIGN_OR_RETURN(std::vector<ShellOption> options,
//                            ParseShellOptions("TP=8\ntrain.py --size $TP --fast  # all", "f"));
//   // {"--size", {"8"}}, {"--fast", {}}
//
// Known are comments, quotes, backslashes, NAME=value, $NAME, ${NAME} and ${NAME:-default}. An
// array's options are read where they stand. Nothing is run: conditions do not count, and what is
// not known keeps its '$'. An option takes what follows up to the next one, or the end of the line
// or array.
//
// Errors: InvalidArgument with the line of a quote that is not closed.
#ifndef PIPELAB_PIPELINES_RECIPES_SHELL_OPTIONS_H_
#define PIPELAB_PIPELINES_RECIPES_SHELL_OPTIONS_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace pipelab {

struct ShellOption {
  std::string name;  // with its dashes
  std::vector<std::string> values;
};

absl::StatusOr<std::vector<ShellOption>> ParseShellOptions(absl::string_view text,
                                                           absl::string_view what);

}  // namespace pipelab

#endif  // PIPELAB_PIPELINES_RECIPES_SHELL_OPTIONS_H_
