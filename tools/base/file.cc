#include "tools/base/file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <system_error>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "tools/base/status_macros.h"

namespace pipelab {
namespace {

namespace fs = std::filesystem;

absl::Status PathError(absl::string_view path, absl::string_view what, int error) {
  const std::string text = absl::StrCat(path, ": ", what, ": ", ErrnoText(error));
  if (error == ENOENT) return absl::NotFoundError(text);
  if (error == EACCES || error == EPERM || error == EROFS) return absl::PermissionDeniedError(text);
  if (error == ENOSPC || error == EDQUOT) return absl::ResourceExhaustedError(text);
  return absl::UnknownError(text);
}

std::string ParentOf(absl::string_view path) {
  const std::string parent = fs::path(std::string(path)).parent_path().string();
  return parent.empty() ? "." : parent;
}

// "a/b/" and "a/b" are one folder; the first has no file name.
std::string WithoutTrailingSlash(absl::string_view path) {
  while (path.size() > 1 && path.back() == '/') path.remove_suffix(1);
  return std::string(path);
}

// Writes all of `text`; 0 or errno.
int WriteAll(int fd, absl::string_view text) {
  while (!text.empty()) {
    const ssize_t n = write(fd, text.data(), text.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return errno;
    text.remove_prefix(n);
  }
  return 0;
}

}  // namespace

// Some file systems refuse it, and the data is safe.
void SyncDirectory(const std::string& dir) {
  const int fd = open(dir.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (fd < 0) return;
  fsync(fd);
  close(fd);
}

namespace {

// mkstemp makes 0600; a result is as readable as any file the user makes.
mode_t DefaultMode(mode_t all) {
  const mode_t mask = umask(0);
  umask(mask);
  return all & ~mask;
}

// Where a write to a path goes.
struct Destination {
  std::string path;  // behind all links, which stay
  // A device, a pipe, or what a process has open (/dev/stdout): written as it is, since a rename
  // would put a file in its place.
  bool stream = false;
  mode_t mode = 0;  // that the file has, or is to have
};

// 0 or errno.
int FindDestination(absl::string_view path, Destination* to) {
  to->path = std::string(path);
  std::error_code error;
  constexpr int kMostLinks = 40;  // as Linux itself
  for (int links = 0; fs::is_symlink(to->path, error); ++links) {
    if (links == kMostLinks) return ELOOP;
    if (absl::StartsWith(to->path, "/proc/")) {
      to->stream = true;
      return 0;
    }
    const std::string target = fs::read_symlink(to->path, error).string();
    if (error) return error.value();
    to->path = JoinPath(target[0] == '/' ? "" : ParentOf(to->path), target);
  }
  struct stat info;
  if (stat(to->path.c_str(), &info) != 0) {
    to->mode = DefaultMode(0666);
    return errno == ENOENT ? 0 : errno;
  }
  if (S_ISDIR(info.st_mode)) return EISDIR;
  to->stream = !S_ISREG(info.st_mode);
  to->mode = info.st_mode & 07777;
  // A rename would not ask.
  return access(to->path.c_str(), W_OK) == 0 ? 0 : errno;
}

int WriteStream(const std::string& path, absl::string_view text) {
  const int fd = open(path.c_str(), O_WRONLY | O_APPEND | O_NOCTTY | O_CLOEXEC);
  if (fd < 0) return errno;
  int error = WriteAll(fd, text);
  if (close(fd) != 0 && error == 0) error = errno;
  return error;
}

// All that a new file needs before its rename; 0 or errno.
int Fill(int fd, mode_t mode, absl::string_view text) {
  int error = WriteAll(fd, text);
  if (error == 0 && fchmod(fd, mode) != 0) error = errno;
  if (error == 0 && fsync(fd) != 0) error = errno;
  return error;
}

// Into a file that gets its name, *temp, once it is whole: of a writer that is killed nothing is
// left. False where the file system cannot do that, or the write fails.
bool WriteNameless(const Destination& to, absl::string_view text, std::string* temp) {
  const int fd = open(ParentOf(to.path).c_str(), O_TMPFILE | O_WRONLY | O_CLOEXEC, 0600);
  if (fd < 0) return false;
  bool named = false;
  if (Fill(fd, to.mode, text) == 0) {
    static std::atomic<int> count{0};
    *temp = absl::StrCat(to.path, ".tmp-", getpid(), "-", ++count);
    const std::string open_file = absl::StrCat("/proc/self/fd/", fd);
    named = linkat(AT_FDCWD, open_file.c_str(), AT_FDCWD, temp->c_str(), AT_SYMLINK_FOLLOW) == 0;
  }
  close(fd);
  return named;
}

// The same into a file that has its name from the start; 0 or errno.
int WriteNamed(const Destination& to, absl::string_view text, std::string* temp) {
  *temp = absl::StrCat(to.path, ".tmp-XXXXXX");
  const int fd = mkostemp(temp->data(), O_CLOEXEC);
  if (fd < 0) return errno;
  int error = Fill(fd, to.mode, text);
  if (close(fd) != 0 && error == 0) error = errno;
  if (error != 0) unlink(temp->c_str());
  return error;
}

}  // namespace

std::string ErrnoText(int error) {
  return std::error_code(error, std::generic_category()).message();
}

std::string JoinPath(absl::string_view a, absl::string_view b) {
  if (a.empty() || absl::StartsWith(b, "/")) return std::string(b);
  return absl::StrCat(a, absl::EndsWith(a, "/") ? "" : "/", b);
}

bool PathExists(absl::string_view path) {
  struct stat info;
  return stat(std::string(path).c_str(), &info) == 0;
}

bool IsDirectory(absl::string_view path) {
  struct stat info;
  return stat(std::string(path).c_str(), &info) == 0 && S_ISDIR(info.st_mode);
}

absl::StatusOr<std::string> ReadFile(absl::string_view path, int64_t limit) {
  const int fd = open(std::string(path).c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return PathError(path, "cannot be read", errno);
  // Pieces until the end, not fstat's size: pipes and /proc files report 0.
  std::string text;
  constexpr size_t kPiece = 1 << 20;
  int error = 0;
  while (static_cast<int64_t>(text.size()) <= limit) {
    const size_t size = text.size();
    text.resize(size + kPiece);
    const ssize_t n = read(fd, &text[size], kPiece);
    if (n < 0) error = errno;
    text.resize(size + (n > 0 ? n : 0));
    if (n < 0 && error == EINTR) continue;
    if (n <= 0) break;
    error = 0;
  }
  close(fd);
  if (static_cast<int64_t>(text.size()) > limit) {
    return absl::OutOfRangeError(
        absl::StrFormat("%s: larger than the %d bytes that can be read here", path, limit));
  }
  if (error != 0) return PathError(path, "cannot be read", error);
  text.shrink_to_fit();
  return text;
}

absl::StatusOr<std::string> ReadTextFile(absl::string_view path, int64_t limit) {
  absl::StatusOr<std::string> text = ReadFile(path, limit);
  constexpr absl::string_view kMark = "\xEF\xBB\xBF";
  if (text.ok() && absl::StartsWith(*text, kMark)) text->erase(0, kMark.size());
  return text;
}

absl::Status WriteFileAtomically(absl::string_view path, absl::string_view text) {
  const auto failed = [&](int error) { return PathError(path, "cannot be written", error); };
  Destination to;
  int error = FindDestination(path, &to);
  if (error != 0) return failed(error);
  if (to.stream) {
    error = WriteStream(to.path, text);
    return error == 0 ? absl::OkStatus() : failed(error);
  }
  std::string temp;
  if (!WriteNameless(to, text, &temp)) error = WriteNamed(to, text, &temp);
  if (error == 0 && rename(temp.c_str(), to.path.c_str()) != 0) {
    error = errno;
    unlink(temp.c_str());
  }
  if (error != 0) return failed(error);
  SyncDirectory(ParentOf(to.path));
  return absl::OkStatus();
}

absl::Status MakeDirectories(absl::string_view path) {
  std::error_code error;
  fs::create_directories(WithoutTrailingSlash(path), error);
  if (error) return PathError(path, "cannot be created", error.value());
  return absl::OkStatus();
}

absl::StatusOr<std::string> MakeTemporaryDirectory(absl::string_view prefix) {
  std::string dir = absl::StrCat(prefix, "XXXXXX");
  if (mkdtemp(dir.data()) == nullptr) return PathError(prefix, "cannot be created", errno);
  if (chmod(dir.c_str(), DefaultMode(0777)) != 0) {
    const int error = errno;
    rmdir(dir.c_str());
    return PathError(dir, "cannot be made readable", error);
  }
  return dir;
}

absl::Status RemoveTree(absl::string_view path) {
  std::error_code error;
  fs::remove_all(std::string(path), error);
  if (error) return PathError(path, "cannot be removed", error.value());
  return absl::OkStatus();
}

absl::Status CheckWritableFile(absl::string_view option, absl::string_view path) {
  Destination to;
  const int error = FindDestination(path, &to);
  if (error == EISDIR) {
    return absl::InvalidArgumentError(
        absl::StrCat(option, "=", path, ": is a folder; give a file"));
  }
  if (error != 0) {
    return absl::InvalidArgumentError(absl::StrCat(option, "=", path,
                                                   ": cannot be written: ", ErrnoText(error),
                                                   "; give a file that can be written"));
  }
  if (to.stream) return absl::OkStatus();
  return OutputDirectory::Prove(option, ParentOf(to.path));
}

absl::Status CheckWritableDirectory(absl::string_view option, absl::string_view dir) {
  constexpr absl::string_view kHint = "; give a folder that can be written";
  std::error_code error;
  const std::string path = WithoutTrailingSlash(dir);
  if (path.empty()) return absl::InvalidArgumentError(absl::StrCat(option, "= is empty", kHint));
  fs::create_directories(path, error);
  if (error) {
    return absl::InvalidArgumentError(
        absl::StrCat(option, "=", dir, ": cannot be created: ", ErrnoText(error.value()), kHint));
  }
  // A trial, not access(): that tells root yes on read-only file systems and in /proc.
  std::string probe = JoinPath(path, ".write-test-XXXXXX");
  const int fd = mkostemp(probe.data(), O_CLOEXEC);
  if (fd < 0) {
    return absl::InvalidArgumentError(
        absl::StrCat(option, "=", dir, ": cannot be written to: ", ErrnoText(errno), kHint));
  }
  close(fd);
  unlink(probe.c_str());
  return absl::OkStatus();
}

std::string ResolveOutputPath(absl::string_view path, absl::string_view name) {
  const auto from = [](const char* variable, absl::string_view relative) {
    const char* base = std::getenv(variable);
    return JoinPath(base == nullptr ? "" : base, relative);
  };
  if (path.empty()) return from("BUILD_WORKSPACE_DIRECTORY", JoinPath("results", name));
  return WithoutTrailingSlash(from("BUILD_WORKING_DIRECTORY", path));
}

}  // namespace pipelab
