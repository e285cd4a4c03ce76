// SHA-256 sums of files, by the sha256sum program.
//
//   PIPELAB_ASSIGN_OR_RETURN(std::string sum, Sha256OfFile("a.deb"));
//   PIPELAB_ASSIGN_OR_RETURN(std::string list, Sha256List(dir));      // of every file below it
//   PIPELAB_RETURN_IF_ERROR(CheckSha256List(dir, list_path));         // DataLoss: one changed
#ifndef PIPELAB_MODELS_DATA_CHECKSUMS_H_
#define PIPELAB_MODELS_DATA_CHECKSUMS_H_

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace pipelab {

// 64 lower-case hexadecimal digits.
absl::StatusOr<std::string> Sha256OfFile(absl::string_view path,
                                         const std::string& program = "sha256sum");

// Lines "SUM  ./PATH" as the program prints and checks them; plain files only, links are left out.
absl::StatusOr<std::string> Sha256List(absl::string_view dir,
                                       const std::string& program = "sha256sum");

// Checks the files below `dir` against the list in the file `list_path`.
absl::Status CheckSha256List(absl::string_view dir, absl::string_view list_path,
                             const std::string& program = "sha256sum");

}  // namespace pipelab

#endif  // PIPELAB_MODELS_DATA_CHECKSUMS_H_
