#include "experiments/predict/rows_file.h"

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "tools/base/file.h"

namespace pipelab {

absl::StatusOr<MeasuredRows> ReadMeasuredRows(absl::string_view option, const std::string& path) {
  const std::string what = absl::StrCat(option, "=", path);
  if (path.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat(option, ": missing; a CSV file of training iterations (docs/validation.md)"));
  }
  const absl::StatusOr<std::string> text = ReadTextFile(ResolveOutputPath(path, ""));
  if (!text.ok()) {
    return absl::Status(text.status().code(), absl::StrCat(what, ": ", text.status().message()));
  }
  absl::StatusOr<MeasuredRows> rows = ParseMeasuredRows(*text, what);
  if (rows.ok()) return rows;
  // The file's fault, not the command line's.
  return absl::FailedPreconditionError(rows.status().message());
}

}  // namespace pipelab
