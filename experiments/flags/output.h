// Where a command's text goes: to a file, whole or not at all, or to stdout.
//
//   PIPELAB_RETURN_IF_ERROR(WriteOutput("--json_out", absl::GetFlag(FLAGS_json_out), text));
//
// "-" is stdout. A relative path is taken from the user's folder. Errors name option and path.
#ifndef PIPELAB_EXPERIMENTS_FLAGS_OUTPUT_H_
#define PIPELAB_EXPERIMENTS_FLAGS_OUTPUT_H_

#include <functional>
#include <map>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace pipelab {

// The version of the fields that commands write as JSON (docs/step.schema.json).
constexpr int kOutputSchema = 1;

absl::Status WriteOutput(absl::string_view option, const std::string& path, absl::string_view text);

// For a program that calls commands: while one lives, what would go to stdout is kept here, and so
// is what goes to files whose name begins with ":". One at a time.
class CapturedOutput {
 public:
  CapturedOutput();
  ~CapturedOutput();
  CapturedOutput(const CapturedOutput&) = delete;
  CapturedOutput& operator=(const CapturedOutput&) = delete;

  // By name, "-" for stdout.
  const std::map<std::string, std::string>& texts() const { return texts_; }

  static CapturedOutput* Current();  // nullptr: a command line

 private:
  friend absl::Status WriteOutput(absl::string_view, const std::string&, absl::string_view);
  std::map<std::string, std::string> texts_;
};

// For a program that shows what a command finds while it still searches: each time, as JSON.
void ListenToNews(std::function<void(absl::string_view json)> listener);
bool HasListener();
void TellNews(absl::string_view json);  // nothing where nobody listens

// Whether text for a person may have colours: stdout is a terminal, and NO_COLOR is not set
// (https://no-color.org).
bool StdoutHasColours();

}  // namespace pipelab

#endif  // PIPELAB_EXPERIMENTS_FLAGS_OUTPUT_H_
