#include "experiments/predict/rows_file.h"

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "tools/base/file.h"
#include "tools/base/file_fault.h"

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
  return FaultOfFile(ParseMeasuredRows(*text, what));
}

}  // namespace pipelab
