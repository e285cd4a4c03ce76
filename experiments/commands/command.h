// The commands of //experiments:pipelab, with their names, options and functions; command_line/command_list.h has
// all of them.
//
//   for (const Command& c : SimulatedCommands()) if (c.name == words[0]) return c.run(words);
//
// A command reads the flags that it names (experiments/flags/flags.h has set them) and prints to stdout.
// `words` are the other words of the command line; words[0] is the command. Errors are one line:
// InvalidArgument for what the user asked (exit code 2), other codes for what files and devices did
// (exit code 1).
#ifndef PIPELAB_EXPERIMENTS_COMMANDS_COMMAND_H_
#define PIPELAB_EXPERIMENTS_COMMANDS_COMMAND_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace pipelab {

using Words = std::vector<std::string>;

struct Command {
  absl::string_view name;
  absl::string_view summary;               // one line
  absl::string_view example;               // what follows "pipelab "
  std::vector<absl::string_view> options;  // flags that it reads
  // None: a program beside this one has it (command_line/beside.h).
  absl::Status (*run)(const Words& words) = nullptr;
};

// Those that plan, simulate and draw (simulated_commands.cc).
std::vector<Command> SimulatedCommands();

// InvalidArgument naming a word behind the command; `hint` begins with ": ".
absl::Status CheckOptionsAlone(const Words& words, absl::string_view command,
                               absl::string_view hint = "");

// InvalidArgument naming a flag that is set and that `command` does not read.
absl::Status CheckOptions(const Command& command);
// That error, for an option "steps=3" of a command of this name.
absl::Status DoesNotUse(absl::string_view command, absl::string_view option);

// One a file, NAME_command.cc.
absl::Status ScheduleCommand(const Words& words);
absl::Status SimulateCommand(const Words& words);
absl::Status CheckCommand(const Words& words);
absl::Status ShowCommand(const Words& words);
absl::Status PredictCommand(const Words& words);
absl::Status ListCommand(const Words& words);
absl::Status SearchCommand(const Words& words);
absl::Status EvaluateCommand(const Words& words);
absl::Status CompareCommand(const Words& words);
absl::Status PlanCommand(const Words& words);
absl::Status CheckPlanCommand(const Words& words);
absl::Status SynthesizeCommand(const Words& words);

}  // namespace pipelab

#endif  // PIPELAB_EXPERIMENTS_COMMANDS_COMMAND_H_
