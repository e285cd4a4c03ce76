// The help texts: of pipelab as a whole, and of each command.
//
//   std::fputs(Overview().c_str(), stdout);             // pipelab --help
//   std::fputs(HelpOf(command).c_str(), stdout);        // pipelab simulate --help
#ifndef PIPELAB_EXPERIMENTS_COMMAND_LINE_HELP_H_
#define PIPELAB_EXPERIMENTS_COMMAND_LINE_HELP_H_

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "experiments/commands/command.h"

namespace pipelab {

constexpr char kExitCodes[] =
    "0 done; 1 failure; 2 usage; 3 a step that needs more memory than a device has; "
    "130 interrupted (Ctrl-C).";
constexpr char kNoColor[] = "Set to anything, timelines on a terminal have no colours.";

// InvalidArgument names the word, all commands and the nearest one.
absl::StatusOr<const Command*> FindCommand(absl::string_view name);

// Each command with an example, and the exit codes.
std::string Overview();

// A command's options, with the defaults that they have there.
std::string HelpOf(const Command& command);

absl::Status HelpCommand(const Words& words);
absl::Status CompletionCommand(const Words& words);  // completion_command.cc

}  // namespace pipelab

#endif  // PIPELAB_EXPERIMENTS_COMMAND_LINE_HELP_H_
