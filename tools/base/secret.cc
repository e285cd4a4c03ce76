#include "tools/base/secret.h"

#include <cstddef>
#include <random>

#include "absl/strings/str_format.h"

namespace pipelab {

std::string NewSecret(int bytes) {
  std::random_device random;
  std::string secret;
  for (int i = 0; i < bytes; i += 4) absl::StrAppendFormat(&secret, "%08x", random());
  return secret;
}

bool SameSecret(absl::string_view a, absl::string_view b) {
  if (a.size() != b.size()) return false;
  unsigned char differs = 0;
  for (size_t i = 0; i < a.size(); ++i) differs |= static_cast<unsigned char>(a[i] ^ b[i]);
  return differs == 0;
}

}  // namespace pipelab
