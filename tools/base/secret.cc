#include "tools/base/secret.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <random>

#include "absl/cleanup/cleanup.h"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_replace.h"
#include "tools/base/file.h"

namespace pipelab {
namespace {

constexpr int64_t kMostSecretBytes = 1 << 16;
constexpr mode_t kOthers = 077;

}  // namespace

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

absl::StatusOr<std::string> ReadSecretFile(const std::string& path) {
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return ReadFile(path);  // which says why
  const absl::Cleanup closes = [fd] { close(fd); };
  struct stat info;
  if (fstat(fd, &info) != 0) return absl::UnknownError(absl::StrCat(path, ": cannot be read"));
  if (info.st_uid != geteuid()) {
    return absl::PermissionDeniedError(absl::StrCat(path, ": belongs to user ", info.st_uid,
                                                    ", who can change it; it must be of user ",
                                                    geteuid(), ", who runs this"));
  }
  if (S_ISREG(info.st_mode) && (info.st_mode & kOthers) != 0) {
    return absl::PermissionDeniedError(
        absl::StrFormat("%s: has mode %04o, so others can use it; it must be 0600 (chmod 600)",
                        path, info.st_mode & 07777));
  }
  // What was opened, though a link may lead elsewhere by now.
  const std::string opened = absl::StrCat("/proc/self/fd/", fd);
  absl::StatusOr<std::string> text =
      ReadFile(S_ISREG(info.st_mode) ? opened : path, kMostSecretBytes);
  if (text.ok()) return text;
  return absl::Status(text.status().code(),
                      absl::StrReplaceAll(text.status().message(), {{opened, path}}));
}

}  // namespace pipelab
