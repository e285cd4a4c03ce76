// FileRendezvous: a file that process 0 writes and the others wait for.
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <memory>
#include <string>
#include <thread>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "kernels/comm/process_group.h"
#include "tools/base/file.h"

namespace pipelab {
namespace {

absl::Status FileError(const std::string& path, const char* what) {
  return absl::UnavailableError(absl::StrCat(path, ": ", what, ": ", std::strerror(errno)));
}

// Written under another name first: whoever sees the file sees all of it.
absl::Status WriteWhole(const std::string& path, const std::string& text) {
  const std::string part = absl::StrCat(path, ".part");
  const int fd = open(part.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
  if (fd < 0) return FileError(part, "cannot be written");
  const bool whole = write(fd, text.data(), text.size()) == static_cast<ssize_t>(text.size());
  const bool closed = close(fd) == 0;
  if (!whole || !closed) return FileError(part, "cannot be written");
  if (link(part.c_str(), path.c_str()) != 0) {
    if (errno == EEXIST) {
      unlink(part.c_str());
      return absl::FailedPreconditionError(
          absl::StrCat(path, ": already there, from another run; remove it or name another file"));
    }
    return FileError(path, "cannot be made");
  }
  unlink(part.c_str());
  return absl::OkStatus();
}

// Removes the file that process 0 has written, with the last copy of the rendezvous.
struct Written {
  std::string path;
  ~Written() {
    if (!path.empty()) unlink(path.c_str());
  }
};

}  // namespace

Rendezvous FileRendezvous(const std::string& path, absl::Duration limit) {
  auto file = std::make_shared<Written>();
  return [path, limit, file](int rank, const std::string& text) -> absl::StatusOr<std::string> {
    if (rank == 0) {
      const absl::Status written = WriteWhole(path, text);
      if (!written.ok()) return written;
      file->path = path;
      return text;
    }
    const absl::Time deadline = absl::Now() + limit;
    while (absl::Now() < deadline) {
      absl::StatusOr<std::string> read = ReadFile(path);
      if (read.ok()) return read;
      if (!absl::IsNotFound(read.status())) return read.status();
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
    }
    return absl::DeadlineExceededError(absl::StrCat(
        path, ": rank ", rank, " waited ", absl::FormatDuration(limit), " for rank 0 to write it"));
  };
}

}  // namespace pipelab
