// Runs another program and collects what it prints: no shell, a limit on the wait, bounded output.
//
//   ProcessOptions options;
//   options.directory = "/tmp/x";
//   PIPELAB_ASSIGN_OR_RETURN(ProcessResult r, RunProcess({"apt-get", "--version"}, options));
//   if (r.exit_code != 0) return absl::UnavailableError(LastLine(r.error));
//
// NotFound: no such program (or folder). DeadlineExceeded: it ran past the limit and was killed
// with every process of its group. A program that fails is a result, not an error.
#ifndef PIPELAB_TOOLS_BASE_PROCESS_H_
#define PIPELAB_TOOLS_BASE_PROCESS_H_

#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"

namespace pipelab {

struct ProcessOptions {
  std::string directory;  // where it runs; empty: here
  absl::Duration timeout = absl::Minutes(5);
  int64_t output_limit = 1 << 20;  // bytes kept of each stream; the rest is read and dropped
  std::vector<std::pair<std::string, std::string>> environment;  // added to this process's own
  // In a group of its own, which the limit ends as a whole and Ctrl-C in the terminal does not
  // reach; else in this process's.
  bool own_group = true;
  // Given what comes on standard error as it comes; may be empty.
  std::function<void(absl::string_view)> on_error;
};

struct ProcessResult {
  int exit_code = 0;   // 128 + signal when a signal ended it, as shells say
  std::string output;  // standard output
  std::string error;   // standard error
};

// `arguments` starts with the program, looked up on PATH. Its standard input is empty.
absl::StatusOr<ProcessResult> RunProcess(const std::vector<std::string>& arguments,
                                         const ProcessOptions& options = {});

// This program's own file, through links; and a file of that name in its folder.
absl::StatusOr<std::string> OwnProgram();
absl::StatusOr<std::string> BesideOwnProgram(absl::string_view name);

// The last line of `text` that is not blank: where programs put their reason.
std::string LastLine(absl::string_view text);

}  // namespace pipelab

#endif  // PIPELAB_TOOLS_BASE_PROCESS_H_
