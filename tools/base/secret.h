// Words that nobody guesses, and their comparison.
//
//   const std::string token = NewSecret(/*bytes=*/16);     // 32 hexadecimal digits
//   if (!SameSecret(said, token)) return absl::PermissionDeniedError(...);
#ifndef PIPELAB_TOOLS_BASE_SECRET_H_
#define PIPELAB_TOOLS_BASE_SECRET_H_

#include <string>

#include "absl/strings/string_view.h"

namespace pipelab {

// So many random bytes, a multiple of 4, as hexadecimal digits.
std::string NewSecret(int bytes);

// In a time that does not tell where they differ; the length is no secret.
bool SameSecret(absl::string_view a, absl::string_view b);

}  // namespace pipelab

#endif  // PIPELAB_TOOLS_BASE_SECRET_H_
