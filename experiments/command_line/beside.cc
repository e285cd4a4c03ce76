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
#include "tools/base/process.h"
#include "tools/base/status_macros.h"

namespace pipelab {
namespace {

constexpr char kTrain[] = "pipelab_train", kStudy[] = "pipelab_study";

bool Trains(const std::string& name) {
  const absl::Span<const Command> commands = Commands();
  return std::any_of(commands.begin(), commands.end(),
                     [&](const Command& c) { return c.name == name && c.run == nullptr; });
}

// The texts about every command need the options of those that train.
bool IsAboutTraining(absl::Span<const std::string> words, size_t command) {
  if (words[command] == "completion") return true;
  if (words[command] != "help") return false;
  return std::any_of(words.begin() + static_cast<std::ptrdiff_t>(command) + 1, words.end(),
                     [](const std::string& w) { return w == "--man" || Trains(w); });
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

absl::optional<OtherProgram> ProgramOf(absl::Span<const std::string> words, bool trains) {
  const auto first = std::find_if(words.begin(), words.end(),
                                  [](const std::string& w) { return !absl::StartsWith(w, "-"); });
  if (first == words.end()) return absl::nullopt;
  std::vector<std::string> all(words.begin(), words.end());
  const size_t command = static_cast<size_t>(first - words.begin());
  if (*first == "study") {
    all.erase(all.begin() + static_cast<std::ptrdiff_t>(command));
    return OtherProgram{kStudy, all};
  }
  if (trains) return absl::nullopt;
  if (Trains(*first) || IsAboutTraining(words, command)) return OtherProgram{kTrain, all};
  return absl::nullopt;
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
      path, ": no such program, and ", program.name == kStudy ? "studies" : "trainings",
      " need it; the .deb and the tarball of a release have it, and so does tools/bazel build "
      "//experiments:",
      program.name));
}

}  // namespace pipelab
