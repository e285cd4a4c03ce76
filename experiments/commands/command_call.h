// A command of the command line, called from another program: the same words and options, the same
// checks and errors, and the output as text.
//
//   CommandOutput output;
//   absl::Status status = CallCommand({"search"}, {"--batch=32", "--json_out=-"}, &output);
//   output.texts["-"]                       // what search would print
//
// Options are process-wide, so calls wait for one another.
#ifndef PIPELAB_EXPERIMENTS_COMMANDS_COMMAND_CALL_H_
#define PIPELAB_EXPERIMENTS_COMMANDS_COMMAND_CALL_H_

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "experiments/commands/command.h"

namespace pipelab {

struct CommandOutput {
  std::map<std::string, std::string> texts;  // of "-", and of files whose name begins with ":"
  // A step that needs more memory than a device has (exit code 3): the figures are there, and this
  // is the line. Empty: it fits.
  std::string does_not_fit;
};

// words[0] is the command's name, the others those behind it; `options` are "--name=value". Runs
// the command, or `instead` with its options set.
absl::Status CallCommand(const Words& words, const std::vector<std::string>& options,
                         CommandOutput* output,
                         const std::function<absl::Status(const Words&)>& instead = nullptr);

// One of SimulatedCommands(); InvalidArgument naming a command that there is not.
absl::StatusOr<Command> FindSimulatedCommand(absl::string_view name);

struct OptionInfo {
  std::string name, type, default_value, help;  // type: bool, int, float or str
};
// InvalidArgument naming a command that there is not.
absl::StatusOr<std::vector<OptionInfo>> OptionsOfCommand(const std::string& name);

}  // namespace pipelab

#endif  // PIPELAB_EXPERIMENTS_COMMANDS_COMMAND_CALL_H_
