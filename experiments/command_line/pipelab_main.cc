#include "experiments/command_line/pipelab_main.h"

#include <algorithm>
#include <cstdio>
#include <string>
#include <vector>

#include "absl/flags/commandlineflag.h"
#include "absl/flags/reflection.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "absl/types/optional.h"
#include "experiments/command_line/beside.h"
#include "experiments/command_line/command_list.h"
#include "experiments/command_line/help.h"
#include "experiments/flags/flags.h"
#include "tools/base/launch_place.h"
#include "tools/base/version.h"

namespace pipelab {
namespace {

// What `--version`, `--help` and `COMMAND --help` print, whatever else there is; none without them.
absl::optional<std::string> TextAskedFor(const std::vector<char*>& words) {
  for (size_t i = 1; i < words.size(); ++i) {
    const absl::string_view word = words[i];
    if (word == "--version") {
      return absl::StrCat("pipelab ", kVersion, "\n");
    }
    if (word != "--help" && word != "-h") continue;
    const absl::StatusOr<const Command*> command = FindCommand(words[1]);
    return command.ok() ? HelpOf(**command) : Overview();
  }
  return absl::nullopt;
}

// An option of commands that this program has not linked, which ParseFlags would not know.
absl::Status CheckForeignOptions(absl::string_view command, const Words& words) {
  for (absl::string_view word : words) {
    if (!absl::ConsumePrefix(&word, "--")) continue;
    const absl::string_view name = word.substr(0, word.find('='));
    if (absl::FindCommandLineFlag(name) != nullptr) continue;
    for (const Command& c : Commands()) {
      if (std::find(c.options.begin(), c.options.end(), name) == c.options.end()) continue;
      return DoesNotUse(command, word);
    }
  }
  return absl::OkStatus();
}

absl::Status RunWords(const Words& words) {
  if (words.empty()) {
    return absl::InvalidArgumentError("a command is missing; --help lists them with examples");
  }
  const absl::StatusOr<const Command*> command = FindCommand(words[0]);
  if (!command.ok()) return command.status();
  const absl::Status options = CheckOptions(**command);
  if (!options.ok()) return options;
  if ((*command)->run != nullptr) return (*command)->run(words);
  return absl::InternalError(absl::StrCat("'", words[0], "': this program does not have it"));
}

}  // namespace

int PipelabMain(int argc, char** argv) {
  std::vector<char*> words(argv, argv + argc);
  const absl::optional<OtherProgram> other =
      ProgramOf(std::vector<std::string>(words.begin() + 1, words.end()));
  if (other.has_value()) {
    const absl::Status status = StartBeside(*other);
    PrintError(status);
    return ExitCode(status);
  }
  // `list --json` and the like need no file: stdout is meant.
  std::string to_stdout = "--json=-";
  for (int i = 2; i < argc; ++i) {
    const std::string command = words[1];
    const bool prints = command == "list" || command == "machine" || command == "search";
    if (prints && words[i] == std::string("--json")) {
      words[i] = &to_stdout[0];
    }
  }
  const absl::optional<std::string> asked = TextAskedFor(words);
  if (!asked.has_value()) {
    const Words given(words.begin() + 1, words.end());
    const absl::Status foreign = argc > 1 && FindCommand(given[0]).ok()
                                     ? CheckForeignOptions(given[0], given)
                                     : absl::OkStatus();
    if (!foreign.ok()) {
      PrintError(foreign);
      return ExitCode(foreign);
    }
    return RunMain(argc, words.data(), "//experiments:pipelab", "",
                   [](const Words& rest) { return RunWords(rest); });
  }
  return RunMain(1, words.data(), "//experiments:pipelab", "", [&](const auto&) {
    // One of several processes speaks.
    if (PlaceFromEnvironment().process == 0) std::fputs(asked->c_str(), stdout);
    return absl::OkStatus();
  });
}

}  // namespace pipelab
