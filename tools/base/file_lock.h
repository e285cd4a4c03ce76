// Keeps other processes of this user on this machine from writing the same file or folder until the
// lock goes. The system lets go of it with the process, however that ends.
//
//   PIPELAB_ASSIGN_OR_RETURN(FileLock lock, FileLock::Take("--checkpoint", "out/a.safetensors"));
//
// The lock is a file in /tmp, so that nothing comes into the user's folders. It is named by the
// path and holds the number of the process that has it. The file goes with the lock; a killed
// process leaves it, and the next one takes it.
#ifndef PIPELAB_TOOLS_BASE_FILE_LOCK_H_
#define PIPELAB_TOOLS_BASE_FILE_LOCK_H_

#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace pipelab {

class FileLock {
 public:
  // FailedPrecondition naming the option, the path and the process that has it. Where /tmp cannot
  // be written the lock keeps nobody off.
  static absl::StatusOr<FileLock> Take(absl::string_view option, absl::string_view path);
  FileLock(FileLock&& other) noexcept
      : file_(std::move(other.file_)), descriptor_(std::exchange(other.descriptor_, -1)) {}
  FileLock& operator=(FileLock&& other) noexcept {
    std::swap(file_, other.file_);
    std::swap(descriptor_, other.descriptor_);
    return *this;
  }
  ~FileLock();

 private:
  FileLock(std::string file, int descriptor) : file_(std::move(file)), descriptor_(descriptor) {}

  std::string file_;
  int descriptor_ = -1;  // -1: keeps nobody off
};

}  // namespace pipelab

#endif  // PIPELAB_TOOLS_BASE_FILE_LOCK_H_
