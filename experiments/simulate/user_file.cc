#include "experiments/simulate/user_file.h"

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

}  // namespace pipelab
