// What a shell script runs: its commands with their words, read as bash reads them and without
// running any. Private to recipes.
//
//   ShellRun run = RunShellScript("N=8\nif [ $N -gt 4 ]; then train.py --n $N; fi", "f", {}, {});
//   run.commands[0].words;   // "train.py", "--n", "8"
//
// Variables, arrays, functions, loops, `case`, `if`, `eval` and `bash -c` count. What the script
// alone does not decide (what it calls, files, the environment) is a choice of the caller's: `path`
// has the alternative of each in turn, and 0 stands for those behind it: what holds where nothing
// is set and every command succeeds. Equal conditions are one choice.
#ifndef PIPELAB_PIPELINES_RECIPES_SHELL_SCRIPT_H_
#define PIPELAB_PIPELINES_RECIPES_SHELL_SCRIPT_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "pipelines/recipes/shell_values.h"

namespace pipelab {

struct ShellCommand {
  std::vector<std::string> words;
  int line = 0;
};

struct ShellChoice {
  ShellDoubt doubt;
  int alternatives = 2;
};

struct ShellRun {
  absl::Status status;  // names the line where the reading ended, and why
  std::vector<ShellCommand> commands;
  std::vector<ShellChoice> choices;
  ShellState state;
  size_t work = 0;                       // that reading it was, in characters
  std::vector<std::string> assigned;     // variables in the order of their assignments
  std::vector<std::string> other_files;  // "line 3 reads model.sh"
};

// `given` are values of the user's: what the script assigns does not replace them.
ShellRun RunShellScript(absl::string_view text, absl::string_view what, const ShellState& given,
                        const std::vector<int>& path);

}  // namespace pipelab

#endif  // PIPELAB_PIPELINES_RECIPES_SHELL_SCRIPT_H_
