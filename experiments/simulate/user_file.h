// Files that options name, from the user's folder.
//
//   PIPELAB_ASSIGN_OR_RETURN(const std::string text, ReadUserFile("--rows", path));
#ifndef PIPELAB_EXPERIMENTS_SIMULATE_USER_FILE_H_
#define PIPELAB_EXPERIMENTS_SIMULATE_USER_FILE_H_

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace pipelab {

// The text of a file, without a byte-order mark; "-" is stdin, which one option may take.
// FailedPrecondition, or InvalidArgument for a second "-"; both begin with "OPTION=PATH".
absl::StatusOr<std::string> ReadUserFile(absl::string_view option, const std::string& path);

// `status`, not OK, with the code that says whose fault it is: what is wrong in a file is no
// mistake in the command.
absl::Status FaultOfFile(const absl::Status& status);

// The same of an option whose word names a file or something that is built in.
absl::Status FaultOfWord(absl::string_view word, const absl::Status& status);

}  // namespace pipelab

#endif  // PIPELAB_EXPERIMENTS_SIMULATE_USER_FILE_H_
