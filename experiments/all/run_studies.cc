#include "experiments/all/run_studies.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <system_error>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "experiments/waiting.h"
#include "tools/base/file.h"
#include "tools/base/process.h"
#include "tools/base/status_macros.h"

namespace pipelab {
namespace {

constexpr char kList[] = "experiments/studies.txt";
constexpr absl::Duration kLongest = absl::Hours(24), kNowAndThen = absl::Seconds(30);

// The folder that holds the program's data: where `bazel run` and tests start it, else beside it.
absl::StatusOr<std::string> DataRoot() {
  if (PathExists(kList)) return std::string(".");
  if (const char* tests = std::getenv("TEST_SRCDIR")) {  // a test may run in another folder
    const std::string root = JoinPath(tests, "pipelab");
    if (PathExists(JoinPath(root, kList))) return root;
  }
  std::error_code error;
  const std::string self = std::filesystem::read_symlink("/proc/self/exe", error).string();
  std::string beside = absl::StrCat(self, ".runfiles/pipelab");
  if (!error && PathExists(JoinPath(beside, kList))) return beside;
  return absl::NotFoundError(
      absl::StrCat(kList, ": not found; start the program with tools/bazel run //experiments:all"));
}

std::string Absolute(const std::string& path) {
  std::error_code error;
  const std::filesystem::path absolute = std::filesystem::absolute(path, error);
  return error ? path : absolute.lexically_normal().string();
}

// Changes with every result that a study writes.
std::filesystem::file_time_type WrittenAt(const std::string& folder) {
  std::error_code error;
  const auto time = std::filesystem::last_write_time(JoinPath(folder, "config.json"), error);
  return error ? std::filesystem::file_time_type::min() : time;
}

}  // namespace

absl::StatusOr<std::vector<StudyProgram>> ParseStudyPrograms(absl::string_view text,
                                                             absl::string_view what) {
  std::vector<StudyProgram> programs;
  for (absl::string_view line : absl::StrSplit(text, '\n', absl::SkipEmpty())) {
    const std::vector<std::string> words = absl::StrSplit(line, ' ');
    if (words.size() != 2 || words[0].empty() || words[1].empty()) {
      return absl::InvalidArgumentError(
          absl::StrCat(what, ": \"", line, "\": must be a name and a path"));
    }
    programs.push_back({words[0], words[1]});
  }
  return programs;
}

absl::StatusOr<std::vector<StudyProgram>> StudyPrograms() {
  PIPELAB_ASSIGN_OR_RETURN(const std::string root, DataRoot());
  const std::string file = JoinPath(root, kList);
  PIPELAB_ASSIGN_OR_RETURN(const std::string text, ReadFile(file));
  PIPELAB_ASSIGN_OR_RETURN(std::vector<StudyProgram> programs, ParseStudyPrograms(text, file));
  for (StudyProgram& p : programs) p.path = Absolute(JoinPath(root, p.path));
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
  std::vector<std::string> command = {study.path, absl::StrCat("--out=", folder)};
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
