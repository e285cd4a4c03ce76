#include "experiments/commands/output.h"

#include <cstdio>

#include "absl/strings/str_cat.h"
#include "tools/base/file.h"

namespace pipelab {

absl::Status WriteOutput(absl::string_view option, const std::string& path,
                         absl::string_view text) {
  if (path == "-") {
    const bool whole = std::fwrite(text.data(), 1, text.size(), stdout) == text.size();
    if (whole && std::fflush(stdout) == 0) return absl::OkStatus();
    return absl::DataLossError(absl::StrCat(option, "=-: stdout took only a part of the text"));
  }
  const absl::Status written = WriteFileAtomically(ResolveOutputPath(path, ""), text);
  if (written.ok()) return written;
  return absl::Status(written.code() == absl::StatusCode::kInvalidArgument
                          ? absl::StatusCode::kFailedPrecondition
                          : written.code(),
                      absl::StrCat(option, "=", path, ": ", written.message()));
}

}  // namespace pipelab
