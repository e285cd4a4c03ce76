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

}  // namespace pipelab

#endif  // PIPELAB_EXPERIMENTS_SIMULATE_USER_FILE_H_
