// tools/bazel run //experiments:pipelab -- COMMAND
//
// Makes, checks, times, draws and runs pipeline schedules, those of the catalogue and those of
// files; docs/cli.md describes commands and JSON fields.
#include <algorithm>
#include <cstdio>
#include <string>
#include <vector>

#include "absl/flags/commandlineflag.h"
#include "absl/flags/reflection.h"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "experiments/commands/command.h"
#include "experiments/flags.h"
#include "kernels/comm/launch_place.h"

namespace pipelab {
namespace {

std::string Names() {
  return absl::StrJoin(Commands(), ", ",
                       [](std::string* out, const Command& c) { absl::StrAppend(out, c.name); });
}

std::string Help() {
  std::string text = "Makes, checks, times, draws and runs pipeline schedules. Commands:\n";
  for (const Command& c : Commands()) {
    absl::StrAppend(&text, "\n  ", c.name, ": ", c.summary, "\n      pipelab ", c.example,
                    "\n      options: --", absl::StrJoin(c.options, " --"), "\n");
  }
  absl::StrAppend(
      &text,
      "\nA file is --csv=FILE, --json=FILE or --text=FILE in the place of a scheme's name. Exit "
      "codes: 0 done; 1 failure; 2 usage; 3 a step that needs more memory than a device has.");
  return text;
}

// `pipelab COMMAND --help`: what one command takes.
std::string HelpOf(const Command& c) {
  std::string text = absl::StrCat(c.name, ": ", c.summary, "\n\n  pipelab ", c.example, "\n\n");
  for (absl::string_view name : c.options) {
    const absl::CommandLineFlag* flag = absl::FindCommandLineFlag(name);
    absl::StrAppend(&text, "  --", name, " (default ", flag->DefaultValue(), ")\n      ",
                    flag->Help(), "\n");
  }
  return text;
}

// Of `COMMAND ... --help`; null for all else.
const Command* CommandToHelpWith(int argc, char** argv) {
  const bool asked = std::any_of(argv + std::min(argc, 2), argv + argc, [](absl::string_view word) {
    return word == "--help" || word == "-h";
  });
  if (!asked) return nullptr;
  for (const Command& c : Commands()) {
    if (c.name == argv[1]) return &c;
  }
  return nullptr;
}

absl::Status Run(const Words& words) {
  if (words.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat("a command is missing; known are ", Names(), "; --help shows examples"));
  }
  for (const Command& c : Commands()) {
    if (c.name != words[0]) continue;
    const absl::Status options = CheckOptions(c);
    return options.ok() ? c.run(words) : options;
  }
  return absl::InvalidArgumentError(absl::StrCat("'", words[0], "': no such command; known are ",
                                                 Names(), "; --help shows examples"));
}

}  // namespace
}  // namespace pipelab

int main(int argc, char** argv) {
  // `list --json` needs no file: stdout is meant.
  std::vector<char*> words(argv, argv + argc);
  std::string to_stdout = "--json=-";
  for (int i = 2; i < argc; ++i) {
    const bool prints = words[1] == std::string("list") || words[1] == std::string("search");
    if (prints && words[i] == std::string("--json")) {
      words[i] = &to_stdout[0];
    }
  }
  const pipelab::Command* const helped = pipelab::CommandToHelpWith(argc, argv);
  if (helped == nullptr) {
    return pipelab::RunMain(argc, words.data(), "//experiments:pipelab", pipelab::Help(),
                            pipelab::Run);
  }
  return pipelab::RunMain(1, words.data(), "//experiments:pipelab", "", [&](const auto&) {
    // Of several processes one speaks.
    if (pipelab::PlaceFromEnvironment().process == 0) {
      std::fputs(pipelab::HelpOf(*helped).c_str(), stdout);
    }
    return absl::OkStatus();
  });
}
