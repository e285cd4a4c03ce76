#include "experiments/commands/token_file.h"

#include <sys/stat.h>

#include <algorithm>

#include "absl/flags/flag.h"
#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "tools/base/file.h"
#include "tools/base/secret.h"

ABSL_FLAG(std::string, token_file, "",
          "file with the word that lets processes join on this host (127.0.0.1); swarm coordinate "
          "writes one where there is none");

namespace pipelab {
namespace {

constexpr size_t kShortest = 16, kLongest = 4096;

std::string FileOfFlag() { return ResolveOutputPath(absl::GetFlag(FLAGS_token_file), ""); }

}  // namespace

std::string NewToken() { return NewSecret(/*bytes=*/32); }

absl::Status MakeTokenFile() {
  const std::string file = FileOfFlag();
  if (PathExists(file)) return absl::OkStatus();
  const mode_t before = umask(0077);
  const absl::Status written = WriteFileAtomically(file, NewToken() + "\n");
  umask(before);
  return written;
}

absl::StatusOr<std::string> TokenFromFlag() {
  const absl::StatusOr<std::string> text = ReadSecretFile(FileOfFlag());
  if (!text.ok()) {
    return absl::Status(text.status().code(),
                        absl::StrCat("--token_file=", text.status().message()));
  }
  std::string token(absl::StripAsciiWhitespace(*text));
  // A header of a call has these alone, and ends at a NUL.
  const bool text_alone =
      std::all_of(token.begin(), token.end(), [](char c) { return c >= ' ' && c <= '~'; });
  if (text_alone && token.size() >= kShortest && token.size() <= kLongest) return token;
  return absl::FailedPreconditionError(
      absl::StrCat("--token_file=", absl::GetFlag(FLAGS_token_file), ": must have from ", kShortest,
                   " to ", kLongest, " printable ASCII characters"));
}

}  // namespace pipelab
