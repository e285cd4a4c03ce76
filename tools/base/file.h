// Files and folders without exceptions: bounded reads, atomic writes, output folders that appear
// whole.
//
//   PIPELAB_ASSIGN_OR_RETURN(std::string text, ReadFile("/etc/hostname"));
//   PIPELAB_RETURN_IF_ERROR(WriteFileAtomically("a.json", "{}\n"));
//
//   const std::string dir = ResolveOutputPath(absl::GetFlag(FLAGS_out), "quickstart");
//   PIPELAB_RETURN_IF_ERROR(CheckWritableDirectory("--out", dir));        // before any long work
//   PIPELAB_ASSIGN_OR_RETURN(OutputDirectory out, OutputDirectory::Create("--out", dir));
//   PIPELAB_RETURN_IF_ERROR(out.Write("run.json", text));                 // into a hidden folder
//   PIPELAB_RETURN_IF_ERROR(out.Publish());                               // all of it, now visible
//
// Sizes are bytes. Every error is one line that names the path (or the option) and the system's
// reason.
#ifndef PIPELAB_TOOLS_BASE_FILE_H_
#define PIPELAB_TOOLS_BASE_FILE_H_

#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace pipelab {

class FileLock;

// "a/b" from "a" and "b"; b alone when it is absolute or a is empty.
std::string JoinPath(absl::string_view a, absl::string_view b);

std::string ErrnoText(int error);  // "No such file or directory"

bool PathExists(absl::string_view path);   // follows links; false when it cannot be told
bool IsDirectory(absl::string_view path);  // the same

// The whole file. OutOfRange when it is larger than `limit`, NotFound when there is none.
constexpr int64_t kReadFileLimit = int64_t{1} << 30;
absl::StatusOr<std::string> ReadFile(absl::string_view path, int64_t limit = kReadFileLimit);

// The same of a text, without the byte-order mark that some editors and spreadsheets put in front.
absl::StatusOr<std::string> ReadTextFile(absl::string_view path, int64_t limit = kReadFileLimit);

// Readers see the old text or the new, never a part: temp file beside it, fsync, rename. A failure
// leaves the old file as it was and no temp file; nor does a writer that is killed, where the file
// system knows files without a name (O_TMPFILE). A link stays, and what it leads to is replaced; a
// file keeps its permissions. Devices, pipes and /dev/stdout are written to, and not replaced.
absl::Status WriteFileAtomically(absl::string_view path, absl::string_view text);

absl::Status MakeDirectories(absl::string_view path);  // like mkdir -p

// Makes a new, empty folder PREFIX + six characters, readable by all (mkdtemp's is private).
absl::StatusOr<std::string> MakeTemporaryDirectory(absl::string_view prefix);

// A hidden new folder for work in progress in `folder`: ".NAME.incomplete-HOST-PROCESS-xxxxxx". A
// run that is interrupted cannot remove its own, so this removes those of `name` whose process is
// gone.
absl::StatusOr<std::string> MakeScratchDirectory(absl::string_view folder, absl::string_view name);

// Makes renames in a folder outlast a power cut, where its file system can.
void SyncDirectory(const std::string& dir);

absl::Status RemoveTree(absl::string_view path);  // like rm -rf; OK when there is nothing

// Creates the folder and proves that a file can be written in it. InvalidArgument, for example
// "--out=/proc/x: cannot be created: No such file or directory; give a folder that can be written".
absl::Status CheckWritableDirectory(absl::string_view option, absl::string_view dir);

// Proves that WriteFileAtomically can write the file, its folder made, and leaves nothing.
// InvalidArgument, for example "--checkpoint=out: is a folder; give a file".
absl::Status CheckWritableFile(absl::string_view option, absl::string_view path);

// Where the user's output path lies. Bazel runs programs in a folder of its own, so a relative path
// is taken from the shell's folder (BUILD_WORKING_DIRECTORY), and an empty one means results/`name`
// of the checkout (BUILD_WORKSPACE_DIRECTORY). Without Bazel both are the current folder.
std::string ResolveOutputPath(absl::string_view path, absl::string_view name);

// Collects a run's files in a hidden folder and makes them visible together. Until Publish() the
// destination is as it was; if Publish() is never called everything collected is removed.
// Create() proves that the folder can be made and written, as Prove() does, and keeps other
// processes from writing it (file_lock.h).
// A destination that is new appears by one rename. In one that exists, files of the same names are
// replaced one by one (each whole) and others stay, because they may not be ours; nor is the folder
// itself replaced, because a shell may stand in it.
class OutputDirectory {
 public:
  static absl::StatusOr<OutputDirectory> Create(absl::string_view option, absl::string_view dir);
  // Leaves nothing.
  static absl::Status Prove(absl::string_view option, absl::string_view dir);
  OutputDirectory(OutputDirectory&& other) noexcept;
  OutputDirectory& operator=(OutputDirectory&& other) noexcept;
  ~OutputDirectory();

  // `name` is relative: "run.json" or "charts/loss.svg".
  absl::Status Write(absl::string_view name, absl::string_view text);
  absl::Status Publish();

  const std::string& path() const { return path_; }  // the destination

 private:
  OutputDirectory(std::string path, std::string folder);
  static absl::StatusOr<OutputDirectory> Proved(absl::string_view option, absl::string_view dir);
  absl::Status Stage();
  void Discard();

  std::string path_;
  std::string folder_;   // where the hidden folder is made
  std::string staging_;  // the hidden folder; empty before the first file and once published
  bool published_ = false;
  std::unique_ptr<FileLock> lock_;
};

}  // namespace pipelab

#endif  // PIPELAB_TOOLS_BASE_FILE_H_
