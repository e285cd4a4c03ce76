#include "experiments/commands/help.h"

#include <vector>

#include "absl/flags/commandlineflag.h"
#include "absl/flags/reflection.h"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "experiments/commands/output.h"
#include "tools/base/did_you_mean.h"

namespace pipelab {
namespace {

// Options that are shared by several commands and mean something else in this one.
struct OptionInCommand {
  absl::string_view command, option, default_value, help;
};
constexpr OptionInCommand kInCommands[] = {
    {"search", "devices", "all of the cluster", "devices to search grids for"},
    {"plan", "devices", "all of the cluster", "devices to plan for"},
    {"check_plan", "devices", "all of the cluster", "devices that the plan is for"},
    {"search", "batch", "required", "samples of a training step; --explain knows its own"},
    {"search", "json", "off", "prints JSON instead of a table"},
    {"list", "json", "off", "prints JSON instead of a table"},
    {"run", "dtype", "fp32",
     "numbers that the devices compute with: fp32; --backend=cuda also tf32 and bf16, "
     "--backend=emulated also bf16"},
};

const OptionInCommand* InCommand(absl::string_view command, absl::string_view option) {
  for (const OptionInCommand& o : kInCommands) {
    if (o.command == command && o.option == option) return &o;
  }
  return nullptr;
}

}  // namespace

absl::StatusOr<const Command*> FindCommand(absl::string_view name) {
  std::vector<absl::string_view> names;
  for (const Command& c : Commands()) {
    if (c.name == name) return &c;
    names.push_back(c.name);
  }
  return absl::InvalidArgumentError(
      absl::StrCat("'", name, "': no such command", NearestOrAll(name, names)));
}

std::string Overview() {
  std::string text = "Makes, checks, times, draws and runs pipeline schedules. Commands:\n";
  for (const Command& c : Commands()) {
    absl::StrAppend(&text, "\n  ", c.name, ": ", c.summary, "\n      pipelab ", c.example, "\n");
  }
  return absl::StrCat(
      text,
      "\n`pipelab help COMMAND` lists a command's options. A file is --csv=FILE, --json=FILE or "
      "--text=FILE in the place of a scheme's name. Exit codes: 0 done; 1 failure; 2 usage; 3 a "
      "step that needs more memory than a device has.\n");
}

std::string HelpOf(const Command& c) {
  std::string text = absl::StrCat(c.name, ": ", c.summary, "\n\n  pipelab ", c.example, "\n\n");
  for (const absl::string_view name : c.options) {
    const absl::CommandLineFlag* flag = absl::FindCommandLineFlag(name);
    const OptionInCommand* here = InCommand(c.name, name);
    const std::string value =
        here != nullptr ? std::string(here->default_value) : flag->DefaultValue();
    absl::StrAppend(&text, "  --", name,
                    value.empty() ? "" : absl::StrCat(" (default ", value, ")"), "\n      ",
                    here != nullptr ? std::string(here->help) : flag->Help(), "\n");
  }
  return text;
}

absl::Status HelpCommand(const Words& words) {
  if (words.size() > 2) {
    return absl::InvalidArgumentError(
        absl::StrCat("'", words[2], "': help takes the name of one command"));
  }
  if (words.size() < 2) return WriteOutput("stdout", "-", Overview());
  const absl::StatusOr<const Command*> command = FindCommand(words[1]);
  if (!command.ok()) return command.status();
  return WriteOutput("stdout", "-", HelpOf(**command));
}

}  // namespace pipelab
