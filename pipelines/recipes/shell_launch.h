// The launches of a program with options among a script's commands. Private to recipes.
#ifndef PIPELAB_PIPELINES_RECIPES_SHELL_LAUNCH_H_
#define PIPELAB_PIPELINES_RECIPES_SHELL_LAUNCH_H_

#include <cstddef>
#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/optional.h"
#include "pipelines/recipes/shell_options.h"
#include "pipelines/recipes/shell_script.h"

namespace pipelab {

// Values may have parts that are not known. Words in front of all options belong to one without a
// name.
struct ShellLaunch {
  std::string program;
  int line = 0;
  std::vector<ShellOption> options;

  // What counts of it, by name.
  std::map<std::string, std::vector<std::string>> Counting(const RoleOf& role_of) const;
};

// Adds the options among the words, from this one on.
void AddShellOptions(const std::vector<std::string>& words, size_t from,
                     std::vector<ShellOption>* options);

absl::optional<ShellLaunch> FindShellLaunch(const ShellCommand& command, const RoleOf& role_of);

// The one of those that differ in what counts, or the chosen one; InvalidArgument lists them.
absl::StatusOr<ShellLaunch> ChooseShellLaunch(const std::vector<ShellLaunch>& launches,
                                              absl::string_view what, const std::string& choice,
                                              const RoleOf& role_of);

// "line 3 runs x.sh, line 4 runs y.sh and 2 more".
std::string FirstFiles(const std::vector<std::string>& files);

// InvalidArgument names the options that count and whose values are not known.
absl::Status CheckKnown(const std::vector<ShellOption>& options, absl::string_view what,
                        const std::vector<std::string>& other_files, const RoleOf& role_of);

}  // namespace pipelab

#endif  // PIPELAB_PIPELINES_RECIPES_SHELL_LAUNCH_H_
