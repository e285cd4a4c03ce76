// The commands of //experiments:pipelab, with their names, options and functions;
// command_line/command_list.h has all of them.
//
//   for (const Command& c : SimulatedCommands()) if (c.name == words[0]) return c.run(words);
//
// This library has the functions of the commands that `search` is one of. Programs that have more
// link them before they ask for a command: LinkCommand("plan", &PlanCommand).
//
// A command reads the flags that it names (experiments/flags/flags.h has set them) and prints to
// stdout. `words` are the other words of the command line; words[0] is the command. Errors are one
// line: InvalidArgument for what the user asked (exit code 2), other codes for what files and
// devices did (exit code 1).
#ifndef PIPELAB_EXPERIMENTS_COMMANDS_COMMAND_H_
#define PIPELAB_EXPERIMENTS_COMMANDS_COMMAND_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace pipelab {

using Words = std::vector<std::string>;

using CommandFunction = absl::Status (*)(const Words& words);

// Programs of more commands than `pipelab` has, which starts them from its own folder
// (command_line/beside.h).
constexpr char kPlanProgram[] =
    "pipelab_plan";  // pipelab's, and what plans, synthesizes and serves
constexpr char kTrainProgram[] = "pipelab_train";  // pipelab_plan's, and what trains
constexpr char kStudyProgram[] = "pipelab_study";  // the studies alone

struct Command {
  absl::string_view name;
  absl::string_view summary;               // one line
  absl::string_view example;               // what follows "pipelab "
  std::vector<absl::string_view> options;  // flags that it reads
  CommandFunction run = nullptr;           // none: this program has not linked it
  absl::string_view program = "";          // the smallest that has it; empty: every one
};

// Gives a command its function, for all lists of commands that are made from now on.
void LinkCommand(absl::string_view name, CommandFunction run);
// Sets the function of each command that was linked so.
void AddLinkedFunctions(std::vector<Command>* commands);

// The same for the names that an option of such a command takes; none of an option that nothing
// linked.
void LinkOptionValues(absl::string_view option, std::vector<std::string> names);
std::vector<std::string> LinkedOptionValues(absl::string_view option);

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
absl::Status MachineCommand(const Words& words);
absl::Status SearchCommand(const Words& words);
absl::Status EvaluateCommand(const Words& words);
absl::Status CompareCommand(const Words& words);

}  // namespace pipelab

#endif  // PIPELAB_EXPERIMENTS_COMMANDS_COMMAND_H_
