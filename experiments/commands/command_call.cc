#include "experiments/commands/command_call.h"

#include <cstdint>
#include <mutex>

#include "absl/flags/commandlineflag.h"
#include "absl/flags/reflection.h"
#include "absl/strings/str_cat.h"
#include "experiments/flags/flag_scope.h"
#include "experiments/flags/flags.h"
#include "experiments/flags/output.h"
#include "tools/base/status_macros.h"

namespace pipelab {
namespace {

constexpr int kDoesNotFit = 3;  // ExitCode

std::mutex& Mutex() {
  static auto* mutex = new std::mutex;
  return *mutex;
}

const char* TypeOf(const absl::CommandLineFlag& flag) {
  if (flag.IsOfType<bool>()) return "bool";
  if (flag.IsOfType<double>()) return "float";
  if (flag.IsOfType<int>() || flag.IsOfType<int64_t>() || flag.IsOfType<uint64_t>()) return "int";
  return "str";
}

}  // namespace

absl::StatusOr<Command> FindSimulatedCommand(absl::string_view name) {
  for (const Command& c : SimulatedCommands()) {
    if (c.name == name) return c;
  }
  return absl::InvalidArgumentError(absl::StrCat("'", name, "': no such command"));
}

absl::Status CallCommand(const Words& words, const std::vector<std::string>& options,
                         CommandOutput* output,
                         const std::function<absl::Status(const Words&)>& instead) {
  PIPELAB_ASSIGN_OR_RETURN(const Command command,
                           FindSimulatedCommand(words.empty() ? "" : words[0]));
  const std::lock_guard<std::mutex> lock(Mutex());
  const FlagScope scope;
  CapturedOutput captured;
  PIPELAB_ASSIGN_OR_RETURN(const Words unknown, ParseFlags(options));
  if (!unknown.empty()) {
    return absl::InvalidArgumentError(absl::StrCat("'", unknown[0], "': options begin with --"));
  }
  PIPELAB_RETURN_IF_ERROR(CheckOptions(command));
  const absl::Status status = instead ? instead(words) : command.run(words);
  output->texts = captured.texts();
  if (ExitCode(status) != kDoesNotFit) return status;
  output->does_not_fit = std::string(status.message());
  return absl::OkStatus();
}

absl::StatusOr<std::vector<OptionInfo>> OptionsOfCommand(const std::string& name) {
  PIPELAB_ASSIGN_OR_RETURN(const Command command, FindSimulatedCommand(name));
  std::vector<OptionInfo> options;
  for (const absl::string_view option : command.options) {
    const absl::CommandLineFlag* flag = absl::FindCommandLineFlag(option);
    if (flag == nullptr) return absl::InternalError(absl::StrCat("--", option, ": no such option"));
    options.push_back({std::string(option), TypeOf(*flag), flag->DefaultValue(), flag->Help()});
  }
  return options;
}

}  // namespace pipelab
