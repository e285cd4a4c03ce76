// The options that a shell script launches a program with, or those of a file of options.
//
//   PIPELAB_ASSIGN_OR_RETURN(
//       std::vector<ShellOption> options,
//       ReadShellOptions("TP=8\ntorchrun train.py --size $TP --fast", "f", {}, role_of));
//   // {"--size", {"8"}}, {"--fast", {}}
//
// A text that begins with an option is a file of options: each takes what follows up to the next
// one or the end of the line, and (, | and ; are characters. Other texts are read as bash would
// read them up to the launch (shell_script.h): a command that runs a Python program with options
// that `role_of` knows, behind torchrun, srun, `bash -c` and the like. A script without commands
// has the options of all its variables.
//
// Errors: InvalidArgument with the line of what cannot be read; of conditions that would decide
// about options that count, and of values of such options, that are not known; of several launches.
#ifndef PIPELAB_PIPELINES_RECIPES_SHELL_OPTIONS_H_
#define PIPELAB_PIPELINES_RECIPES_SHELL_OPTIONS_H_

#include <functional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace pipelab {

struct ShellOption {
  std::string name;  // with its dashes
  std::vector<std::string> values;
};

enum class OptionRole : uint8_t { kUnknown, kWithoutInfluence, kCounts };

using RoleOf = std::function<OptionRole(absl::string_view name)>;

// The user's choices where a script leaves some.
struct ScriptChoice {
  std::string launch;  // of several: its number, from 1, or its program
  std::string set;     // values of variables and arguments: "SIZE=small,1=8"
};

absl::StatusOr<std::vector<ShellOption>> ReadShellOptions(absl::string_view text,
                                                          absl::string_view what,
                                                          const ScriptChoice& choice,
                                                          const RoleOf& role_of);

}  // namespace pipelab

#endif  // PIPELAB_PIPELINES_RECIPES_SHELL_OPTIONS_H_
