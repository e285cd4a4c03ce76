// tools/bazel run //experiments:pipelab -- COMMAND
//
// Makes, checks, times, draws and runs pipeline schedules, those of the catalogue and those of
// files; docs/cli.md describes configurations, files and JSON fields.
#include <cstdio>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/types/optional.h"
#include "experiments/commands/command.h"
#include "experiments/commands/help.h"
#include "experiments/flags.h"
#include "experiments/optimizer_flags.h"
#include "tools/base/launch_place.h"
#include "tools/base/version.h"

namespace pipelab {
namespace {

// What `--version`, `--help` and `COMMAND --help` print, whatever else there is; none without them.
absl::optional<std::string> TextAskedFor(const std::vector<char*>& words) {
  for (size_t i = 1; i < words.size(); ++i) {
    const absl::string_view word = words[i];
    if (word == "--version") {
      return absl::StrCat("pipelab ", kVersion, ": no version has been released\n");
    }
    if (word != "--help" && word != "-h") continue;
    const absl::StatusOr<const Command*> command = FindCommand(words[1]);
    return command.ok() ? HelpOf(**command) : Overview();
  }
  return absl::nullopt;
}

absl::Status Run(const Words& words) {
  if (words.empty()) {
    return absl::InvalidArgumentError("a command is missing; --help lists them with examples");
  }
  const absl::StatusOr<const Command*> command = FindCommand(words[0]);
  if (!command.ok()) return command.status();
  const absl::Status options = CheckOptions(**command);
  return options.ok() ? (*command)->run(words) : options;
}

}  // namespace
}  // namespace pipelab

int main(int argc, char** argv) {
  pipelab::RegisterOptimizerFlags();
  // `list --json` needs no file: stdout is meant.
  std::vector<char*> words(argv, argv + argc);
  std::string to_stdout = "--json=-";
  for (int i = 2; i < argc; ++i) {
    const bool prints = words[1] == std::string("list") || words[1] == std::string("search");
    if (prints && words[i] == std::string("--json")) {
      words[i] = &to_stdout[0];
    }
  }
  const absl::optional<std::string> asked = pipelab::TextAskedFor(words);
  if (!asked.has_value()) {
    return pipelab::RunMain(argc, words.data(), "//experiments:pipelab", "", pipelab::Run);
  }
  return pipelab::RunMain(1, words.data(), "//experiments:pipelab", "", [&](const auto&) {
    // Of several processes one speaks.
    if (pipelab::PlaceFromEnvironment().process == 0) std::fputs(asked->c_str(), stdout);
    return absl::OkStatus();
  });
}
