#include "tools/base/file_lock.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <system_error>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "tools/base/rng.h"

namespace pipelab {
namespace {

namespace fs = std::filesystem;

// The same for all ways to write the path, whether it is there or not.
std::string LockFile(absl::string_view path) {
  std::error_code error;
  fs::path whole = fs::weakly_canonical(fs::absolute(std::string(path), error), error);
  if (!whole.has_filename()) whole = whole.parent_path();  // "a/b/" is "a/b"
  return absl::StrFormat("/tmp/pipelab-%d-%016x.lock", geteuid(), StableHash(whole.string()));
}

// True when the open file still has this name: another process may have removed it meanwhile.
bool IsThere(int descriptor, const std::string& file) {
  struct stat open, named;
  return fstat(descriptor, &open) == 0 && stat(file.c_str(), &named) == 0 &&
         open.st_ino == named.st_ino && open.st_dev == named.st_dev;
}

std::string Holder(int descriptor) {
  char text[32] = "";
  const ssize_t size = pread(descriptor, text, sizeof(text) - 1, 0);
  return size > 0 ? absl::StrCat("process ", std::string(text, static_cast<size_t>(size)))
                  : "another process";
}

}  // namespace

absl::StatusOr<FileLock> FileLock::Take(absl::string_view option, absl::string_view path) {
  const std::string file = LockFile(path);
  for (;;) {
    const int descriptor = open(file.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    FileLock lock(file, descriptor);
    if (descriptor < 0) return lock;
    if (flock(descriptor, LOCK_EX | LOCK_NB) != 0) {
      const bool taken = errno == EWOULDBLOCK;
      const std::string holder = Holder(descriptor);
      close(std::exchange(lock.descriptor_, -1));
      if (!taken) return lock;
      return absl::FailedPreconditionError(absl::StrCat(
          option, "=", path, ": ", holder, " writes it; wait until it ends, or give another path"));
    }
    if (IsThere(descriptor, file)) {
      // The number serves the other's message alone, so that no error of it matters.
      const std::string id = absl::StrCat(getpid());
      const bool said =
          ftruncate(descriptor, 0) == 0 && pwrite(descriptor, id.data(), id.size(), 0) > 0;
      static_cast<void>(said);
      return lock;
    }
    close(std::exchange(lock.descriptor_, -1));
  }
}

FileLock::~FileLock() {
  if (descriptor_ < 0) return;
  unlink(file_.c_str());
  close(descriptor_);
}

}  // namespace pipelab
