#include "experiments/simulate/user_file.h"

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "tools/base/file.h"

namespace pipelab {

absl::StatusOr<std::string> ReadUserFile(absl::string_view option, const std::string& path) {
  const bool from_stdin = path == "-";
  if (from_stdin) {
    static auto* taken_by = new std::string;
    if (!taken_by->empty() && *taken_by != option) {
      return absl::InvalidArgumentError(
          absl::StrCat(*taken_by, "=- and ", option, "=-: only one of them can be stdin"));
    }
    *taken_by = std::string(option);
  }
  absl::StatusOr<std::string> text =
      ReadTextFile(from_stdin ? "/dev/stdin" : ResolveOutputPath(path, ""));
  if (text.ok()) return text;
  return absl::FailedPreconditionError(
      absl::StrCat(option, "=", path, ": ", text.status().message()));
}

absl::Status FaultOfFile(const absl::Status& status) {
  return absl::FailedPreconditionError(status.message());
}

absl::Status FaultOfWord(absl::string_view word, const absl::Status& status) {
  // A model's word may end with the tokens of a sample.
  const absl::string_view path = word.substr(0, word.rfind('@'));
  const bool file =
      absl::StrContains(path, "/") || absl::EndsWith(path, ".json") || absl::EndsWith(path, ".txt");
  return file ? FaultOfFile(status) : absl::InvalidArgumentError(status.message());
}

}  // namespace pipelab
