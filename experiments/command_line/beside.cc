#include "experiments/command_line/beside.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "experiments/command_line/command_list.h"
#include "experiments/command_line/topics.h"
#include "experiments/commands/command.h"
#include "tools/base/process.h"
#include "tools/base/status_macros.h"

namespace pipelab {
namespace {

// The program that has a command or a topic of help; empty: this one, or none.
absl::string_view ProgramNamed(absl::string_view name) {
  for (const Command& c : Commands()) {
    if (c.name == name) return c.run == nullptr ? c.program : "";
  }
  for (const Topic& t : Topics()) {
    if (t.name == name && !t.command.empty()) return ProgramNamed(t.command);
  }
  return "";
}

// The texts about every command need the options of all that train.
absl::string_view ProgramOfTexts() {
  const absl::Span<const Command> commands = Commands();
  const bool lacks = std::any_of(commands.begin(), commands.end(), [](const Command& c) {
    return c.run == nullptr && c.program != kStudyProgram;
  });
  return lacks ? kTrainProgram : "";
}

absl::string_view ProgramOfCommand(absl::Span<const std::string> words) {
  if (words[0] == "completion") return ProgramOfTexts();
  if (words[0] != "help") return ProgramNamed(words[0]);
  for (const std::string& word : words.subspan(1)) {
    const absl::string_view program = word == "--man" ? ProgramOfTexts() : ProgramNamed(word);
    if (!program.empty()) return program;
  }
  return "";
}

const char* WhatNeeds(absl::string_view program) {
  if (program == kStudyProgram) return "studies";
  return program == kTrainProgram ? "trainings" : "plans, syntheses and the server";
}

// Bazel's checkout, where `bazel run` started this program; else empty.
std::string Checkout() {
  const char* const folder = std::getenv("BUILD_WORKSPACE_DIRECTORY");
  if (folder == nullptr) return "";
  return access(absl::StrCat(folder, "/tools/bazel").c_str(), X_OK) == 0 ? folder : "";
}

absl::Status Build(const std::string& checkout, const std::string& name) {
  ProcessOptions options;
  options.directory = checkout;
  options.timeout = absl::Hours(2);
  options.own_group = false;
  options.on_error = [](absl::string_view text) {
    std::fwrite(text.data(), 1, text.size(), stderr);
  };
  const std::string target = absl::StrCat("//experiments:", name);
  std::vector<std::string> command = {"tools/bazel", "build"};
  // As this program was built, so that both have the same devices.
#ifdef PIPELAB_WITH_CUDA
  command.push_back("--config=cuda");
#endif
#ifdef PIPELAB_WITH_MPI
  command.push_back("--config=mpi");
#endif
  command.insert(command.end(), {"--ui_event_filters=-info", "--show_result=0", target});
  PIPELAB_ASSIGN_OR_RETURN(const ProcessResult built, RunProcess(command, options));
  if (built.exit_code == 0) return absl::OkStatus();
  return absl::UnavailableError(absl::StrCat("tools/bazel build ", target, " failed (exit code ",
                                             built.exit_code, "); its errors are above"));
}

}  // namespace

absl::optional<OtherProgram> ProgramOf(absl::Span<const std::string> words) {
  const auto first = std::find_if(words.begin(), words.end(),
                                  [](const std::string& w) { return !absl::StartsWith(w, "-"); });
  if (first == words.end()) return absl::nullopt;
  const size_t command = static_cast<size_t>(first - words.begin());
  const absl::string_view program = ProgramOfCommand(words.subspan(command));
  if (program.empty()) return absl::nullopt;
  std::vector<std::string> all(words.begin(), words.end());
  // The studies' program has no other commands.
  if (*first == "study") all.erase(all.begin() + static_cast<std::ptrdiff_t>(command));
  return OtherProgram{std::string(program), all};
}

absl::Status StartBeside(const OtherProgram& program) {
  PIPELAB_ASSIGN_OR_RETURN(const std::string path, BesideOwnProgram(program.name));
  const std::string checkout = Checkout();
  if (!checkout.empty()) PIPELAB_RETURN_IF_ERROR(Build(checkout, program.name));
  std::vector<std::string> words = program.words;
  words.insert(words.begin(), path);
  std::vector<char*> arguments;
  for (std::string& word : words) arguments.push_back(&word[0]);
  arguments.push_back(nullptr);
  std::fflush(nullptr);
  execv(path.c_str(), arguments.data());
  if (errno != ENOENT) return absl::InternalError(absl::StrCat(path, ": ", std::strerror(errno)));
  return absl::NotFoundError(absl::StrCat(
      path, ": no such program, and ", WhatNeeds(program.name),
      " need it; the .deb and the tarball of a release have it, and so does tools/bazel build "
      "//experiments:",
      program.name));
}

}  // namespace pipelab
