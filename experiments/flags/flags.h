// Command lines of experiments: absl flags, with errors of one line and without exits.
//
//   ABSL_FLAG(int, devices, 4, "pipeline devices");
//   int main(int argc, char** argv) {
//     return pipelab::RunMain(argc, argv, "//experiments:quickstart", "What it does.",
//                             [](auto args) { return Run(); });    // absl::Status
//   }
//
// Exit codes: 0 done; 1 failure (data, disk, a device); 2 usage (InvalidArgument: an option's value
// is wrong); 3 a step that needs more memory than a device has (DoesNotFit); 130 Ctrl-C (Cancelled
// where the program takes it itself, else waiting.h).
#ifndef PIPELAB_EXPERIMENTS_FLAGS_FLAGS_H_
#define PIPELAB_EXPERIMENTS_FLAGS_FLAGS_H_

#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"

namespace pipelab {

// Sets flags from "--name=value", "--name value", "--flag" and "--noflag" (booleans); returns the
// other words. InvalidArgument names the option and the value: "--devices=x: not a whole number".
// Former names of options are taken with a warning on stderr.
absl::StatusOr<std::vector<std::string>> ParseFlags(absl::Span<const std::string> words);

// The name that an option of this name has today; most are their own.
absl::string_view CurrentFlagName(absl::string_view name);

// Whether ParseFlags has set the flag, be it to its default.
bool FlagWasSet(absl::string_view name);

// Other defaults than those in the flags' definitions, for a program that shares its flags with
// others; before ParseFlags. Names and values are right (CHECKed).
void SetFlagDefaults(absl::Span<const std::pair<std::string, std::string>> values);

// Flags that this project defines, with their present values, by name: what config.json records.
std::map<std::string, std::string> ResolvedFlags();

// An answer that is told and cannot be used: exit code 3.
absl::Status DoesNotFit(absl::string_view message);

// How a program ends: the exit code for a Status, and its one line on stderr.
int ExitCode(const absl::Status& status);
void PrintError(const absl::Status& status);

// Runs an experiment: start-up (logging to stderr, SIGPIPE), --help, flags, and the exit code for
// the Status. Of several processes (mpirun) the first one prints; others that fail give it 10 s.
int RunMain(int argc, char** argv, absl::string_view target, absl::string_view summary,
            const std::function<absl::Status(const std::vector<std::string>& words)>& run);

}  // namespace pipelab

#endif  // PIPELAB_EXPERIMENTS_FLAGS_FLAGS_H_
