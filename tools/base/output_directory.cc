// MakeScratchDirectory and OutputDirectory of tools/base/file.h.
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <system_error>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "tools/base/file.h"
#include "tools/base/file_lock.h"
#include "tools/base/status_macros.h"

namespace pipelab {
namespace {

namespace fs = std::filesystem;

std::string HostName() {
  char name[256] = "";
  gethostname(name, sizeof(name) - 1);
  return name;
}

// Removes `folder`/`stem`PROCESS-xxxxxx of processes that are gone. `stem` holds this host's name:
// of another host's processes nothing is known.
void RemoveAbandoned(const fs::path& folder, const std::string& stem) {
  std::error_code error;
  std::vector<fs::path> abandoned;
  for (fs::directory_iterator it(folder, error), end; !error && it != end; it.increment(error)) {
    const std::string name = it->path().filename().string();
    absl::string_view rest = name;
    if (!absl::ConsumePrefix(&rest, stem)) continue;
    int pid = 0;
    if (!absl::SimpleAtoi(rest.substr(0, rest.find('-')), &pid) || pid <= 0) continue;
    if (kill(pid, 0) != 0 && errno == ESRCH) abandoned.push_back(it->path());
  }
  for (const fs::path& path : abandoned) fs::remove_all(path, error);
}

absl::Status MoveFile(const fs::path& from, const fs::path& to) {
  std::error_code error;
  fs::rename(from, to, error);
  if (!error) return absl::OkStatus();
  return absl::UnknownError(absl::StrCat(to.string(), ": cannot be replaced: ", error.message()));
}

// Moves each file of `from` to the same name below `to`. Folders are made first.
absl::Status MoveFiles(const fs::path& from, const fs::path& to) {
  std::error_code error;
  std::vector<fs::path> files;
  fs::recursive_directory_iterator it(from, error), end;
  for (; !error && it != end; it.increment(error)) {
    const fs::path target = to / it->path().lexically_relative(from);
    if (it->is_directory(error)) {
      PIPELAB_RETURN_IF_ERROR(MakeDirectories(target.string()));
    } else {
      files.push_back(it->path());
    }
  }
  if (error) {
    return absl::UnknownError(absl::StrCat(from.string(), ": cannot be read: ", error.message()));
  }
  for (const fs::path& file : files) {
    PIPELAB_RETURN_IF_ERROR(MoveFile(file, to / file.lexically_relative(from)));
  }
  return absl::OkStatus();
}

// Removes the folders that it was told of and that were not there, if they are empty, when it goes.
class NewParents {
 public:
  explicit NewParents(fs::path folder) {
    std::error_code error;
    for (; !folder.empty() && !fs::exists(folder, error); folder = folder.parent_path()) {
      missing_.push_back(folder);
    }
  }
  NewParents(const NewParents&) = delete;
  NewParents& operator=(const NewParents&) = delete;
  ~NewParents() {
    for (const fs::path& path : missing_) rmdir(path.c_str());
  }

 private:
  std::vector<fs::path> missing_;  // the deepest first
};

bool SameFileSystem(const fs::path& a, const fs::path& b) {
  struct stat x, y;
  return stat(a.c_str(), &x) == 0 && stat(b.c_str(), &y) == 0 && x.st_dev == y.st_dev;
}

}  // namespace

absl::StatusOr<std::string> MakeScratchDirectory(absl::string_view folder, absl::string_view name) {
  const std::string stem = absl::StrCat(".", name, ".incomplete-", HostName(), "-");
  RemoveAbandoned(std::string(folder), stem);
  return MakeTemporaryDirectory(JoinPath(folder, absl::StrCat(stem, getpid(), "-")));
}

absl::StatusOr<OutputDirectory> OutputDirectory::Create(absl::string_view option,
                                                        absl::string_view dir) {
  PIPELAB_ASSIGN_OR_RETURN(FileLock lock, FileLock::Take(option, dir));
  PIPELAB_ASSIGN_OR_RETURN(OutputDirectory directory, Proved(option, dir));
  directory.lock_ = std::make_unique<FileLock>(std::move(lock));
  return directory;
}

absl::Status OutputDirectory::Prove(absl::string_view option, absl::string_view dir) {
  return Proved(option, dir).status();
}

absl::StatusOr<OutputDirectory> OutputDirectory::Proved(absl::string_view option,
                                                        absl::string_view dir) {
  std::error_code error;
  const fs::path path = fs::absolute(std::string(dir), error).lexically_normal();
  fs::path target = path.has_filename() ? path : path.parent_path();  // "a/b/" is "a/b"
  // Beside the destination, so that one rename shows all. Inside it where that cannot be: the
  // destination is another file system, or the folder above is not ours to write.
  const bool exists = fs::exists(target, error);
  fs::path folder = target.parent_path();
  const NewParents parents(folder);
  if (exists && (!SameFileSystem(folder, target) || access(folder.c_str(), W_OK) != 0)) {
    folder = target;
  }
  if (exists && !fs::is_directory(target, error)) {
    return absl::InvalidArgumentError(
        absl::StrCat(option, "=", dir, ": is a file; give a folder that can be written"));
  }
  if (exists) {
    PIPELAB_RETURN_IF_ERROR(CheckWritableDirectory(option, dir));
  } else if (absl::Status above = CheckWritableDirectory("above it", folder.string());
             !above.ok()) {
    return absl::InvalidArgumentError(absl::StrCat(option, "=", dir, ": ", above.message()));
  }
  OutputDirectory directory(target.string(), folder.string());
  PIPELAB_RETURN_IF_ERROR(directory.Stage());
  directory.Discard();
  return directory;
}

absl::Status OutputDirectory::Stage() {
  if (!staging_.empty()) return absl::OkStatus();
  PIPELAB_RETURN_IF_ERROR(MakeDirectories(folder_));
  PIPELAB_ASSIGN_OR_RETURN(staging_,
                           MakeScratchDirectory(folder_, fs::path(path_).filename().string()));
  return absl::OkStatus();
}

OutputDirectory& OutputDirectory::operator=(OutputDirectory&& other) noexcept {
  if (this == &other) return *this;
  Discard();
  path_ = std::move(other.path_);
  folder_ = std::move(other.folder_);
  staging_ = std::move(other.staging_);
  published_ = other.published_;
  lock_ = std::move(other.lock_);
  other.staging_.clear();
  return *this;
}

OutputDirectory::OutputDirectory(std::string path, std::string folder)
    : path_(std::move(path)), folder_(std::move(folder)) {}
OutputDirectory::OutputDirectory(OutputDirectory&& other) noexcept { *this = std::move(other); }
OutputDirectory::~OutputDirectory() { Discard(); }

void OutputDirectory::Discard() {
  if (staging_.empty()) return;
  RemoveTree(staging_).IgnoreError();  // nothing more can be done from here
  staging_.clear();
}

absl::Status OutputDirectory::Write(absl::string_view name, absl::string_view text) {
  const fs::path relative = fs::path(std::string(name)).lexically_normal();
  if (published_ || relative.empty() || relative.is_absolute() || *relative.begin() == "..") {
    return absl::InvalidArgumentError(absl::StrCat(
        "output file '", name,
        "': ", published_ ? "already published" : "not a name inside the output folder"));
  }
  PIPELAB_RETURN_IF_ERROR(Stage());
  const fs::path path = fs::path(staging_) / relative;
  PIPELAB_RETURN_IF_ERROR(MakeDirectories(path.parent_path().string()));
  return WriteFileAtomically(path.string(), text);
}

absl::Status OutputDirectory::Publish() {
  if (published_) {
    return absl::FailedPreconditionError(absl::StrCat(path_, ": already published"));
  }
  PIPELAB_RETURN_IF_ERROR(Stage());
  published_ = true;
  if (!PathExists(path_) && rename(staging_.c_str(), path_.c_str()) == 0) {
    staging_.clear();
    SyncDirectory(folder_);
    return absl::OkStatus();
  }
  PIPELAB_RETURN_IF_ERROR(MakeDirectories(path_));
  const absl::Status moved = MoveFiles(staging_, path_);
  Discard();
  SyncDirectory(path_);
  return moved;
}

}  // namespace pipelab
