#include "experiments/all/run_studies.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <system_error>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "experiments/flags/waiting.h"
#include "tools/base/file.h"
#include "tools/base/process.h"
#include "tools/base/status_macros.h"

namespace pipelab {
namespace {

constexpr char kAnyReference[] = "experiments/results/claims.csv";
// A study that is a program of its own, in the folder of the others' program.
constexpr char kOwnProgram[] = "quickstart";
constexpr absl::Duration kLongest = absl::Hours(24), kNowAndThen = absl::Seconds(30);

// The folder that holds the program's data: where `bazel run` and tests start it, else beside it.
absl::StatusOr<std::string> DataRoot() {
  if (PathExists(kAnyReference)) return std::string(".");
  if (const char* tests = std::getenv("TEST_SRCDIR")) {  // a test may run in another folder
    const std::string root = JoinPath(tests, "pipelab");
    if (PathExists(JoinPath(root, kAnyReference))) return root;
  }
  if (const absl::StatusOr<std::string> self = OwnProgram(); self.ok()) {
    std::string beside = absl::StrCat(*self, ".runfiles/pipelab");
    if (PathExists(JoinPath(beside, kAnyReference))) return beside;
  }
  return absl::NotFoundError(absl::StrCat(
      kAnyReference, ": not found; start the program with tools/bazel run //experiments:all"));
}

// Changes with every result that a study writes.
std::filesystem::file_time_type WrittenAt(const std::string& folder) {
  std::error_code error;
  const auto time = std::filesystem::last_write_time(JoinPath(folder, "config.json"), error);
  return error ? std::filesystem::file_time_type::min() : time;
}

}  // namespace

absl::StatusOr<std::vector<StudyProgram>> StudyPrograms(const std::vector<std::string>& names) {
  PIPELAB_ASSIGN_OR_RETURN(const std::string self, OwnProgram());
  PIPELAB_ASSIGN_OR_RETURN(const std::string own_program, BesideOwnProgram(kOwnProgram));
  std::vector<StudyProgram> programs;
  for (const std::string& name : names) {
    if (name == kOwnProgram) {
      programs.push_back({name, {own_program}});
    } else {
      programs.push_back({name, {self, name}});
    }
  }
  return programs;
}

std::string SomeLines::Add(absl::string_view text, absl::Time now) {
  absl::StrAppend(&rest_, text);
  const size_t end = rest_.rfind('\n');
  if (end != std::string::npos) {
    const std::string line = LastLine(absl::string_view(rest_).substr(0, end));
    if (!line.empty()) line_ = line;
    rest_.erase(0, end + 1);
  }
  if (line_.empty() || now - said_ < every_) return "";
  said_ = now;
  return std::exchange(line_, "");
}

StudyOutcome RunStudy(const StudyProgram& study, const RunStudiesOptions& options) {
  StudyOutcome outcome;
  outcome.name = study.name;
  const std::string folder = JoinPath(options.out, study.name);
  std::vector<std::string> command = study.command;
  command.push_back(absl::StrCat("--out=", folder));
  if (options.quick) command.push_back("--quick");
  ProcessOptions process;
  process.timeout = kLongest;
  process.own_group = false;  // Ctrl-C ends it, too
  SomeLines some(kNowAndThen, absl::Now());
  if (options.verbose) {
    process.on_error = [](absl::string_view text) {
      const Waiting::Output output;
      std::fwrite(text.data(), 1, text.size(), stderr);
    };
  } else if (options.progress) {
    process.on_error = [&](absl::string_view text) {
      const std::string line = some.Add(text, absl::Now());
      if (!line.empty()) Waiting::Say(absl::StrCat("  ", line));
    };
  }
  const auto before = WrittenAt(folder);
  const absl::StatusOr<ProcessResult> ran = RunProcess(command, process);
  if (!ran.ok()) {
    outcome.failure = absl::StrCat("does not run: ", ran.status().message());
    return outcome;
  }
  if (ran->exit_code != 0) {
    outcome.failure =
        absl::StrCat("ended with exit code ", ran->exit_code, ": ", LastLine(ran->error));
  }
  if (WrittenAt(folder) == before) {
    if (outcome.failure.empty()) outcome.failure = "wrote no result";
    return outcome;
  }
  absl::StatusOr<ResultFolder> result = ReadResultFolder(folder);
  if (result.ok()) {
    outcome.result = *std::move(result);
  } else {
    outcome.failure = std::string(result.status().message());
  }
  return outcome;
}

absl::StatusOr<std::string> ReferenceOf(absl::string_view study) {
  PIPELAB_ASSIGN_OR_RETURN(const std::string root, DataRoot());
  return ReadFile(JoinPath(root, absl::StrCat("experiments/results/", study, ".csv")));
}

}  // namespace pipelab
