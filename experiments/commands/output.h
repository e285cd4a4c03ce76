// Where a command's text goes: to a file, whole or not at all, or to stdout.
//
//   PIPELAB_RETURN_IF_ERROR(WriteOutput("--json_out", absl::GetFlag(FLAGS_json_out), text));
//
// "-" is stdout. A relative path is taken from the user's folder. Errors name option and path.
#ifndef PIPELAB_EXPERIMENTS_COMMANDS_OUTPUT_H_
#define PIPELAB_EXPERIMENTS_COMMANDS_OUTPUT_H_

#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace pipelab {

// The version of the fields that commands write as JSON (docs/step.schema.json).
constexpr int kOutputSchema = 1;

absl::Status WriteOutput(absl::string_view option, const std::string& path, absl::string_view text);

// Whether text for a person may have colours: stdout is a terminal, and NO_COLOR is not set
// (https://no-color.org).
bool StdoutHasColours();

}  // namespace pipelab

#endif  // PIPELAB_EXPERIMENTS_COMMANDS_OUTPUT_H_
