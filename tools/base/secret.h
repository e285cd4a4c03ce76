// Words that nobody guesses, and their comparison.
//
//   const std::string token = NewSecret(/*bytes=*/16);     // 32 hexadecimal digits
//   if (!SameSecret(said, token)) return absl::PermissionDeniedError(...);
//   PIPELAB_ASSIGN_OR_RETURN(const std::string key, ReadSecretFile("key.pem"));
#ifndef PIPELAB_TOOLS_BASE_SECRET_H_
#define PIPELAB_TOOLS_BASE_SECRET_H_

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace pipelab {

// So many random bytes, a multiple of 4, as hexadecimal digits.
std::string NewSecret(int bytes);

// In a time that does not tell where they differ; the length is no secret.
bool SameSecret(absl::string_view a, absl::string_view b);

// The text of a small file that, as ssh wants it of its keys, belongs to this user and that nobody
// else may read or write. PermissionDenied names the file, its mode or owner, and what would be
// right; other errors are ReadFile's.
absl::StatusOr<std::string> ReadSecretFile(const std::string& path);

}  // namespace pipelab

#endif  // PIPELAB_TOOLS_BASE_SECRET_H_
