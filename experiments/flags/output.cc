#include "experiments/flags/output.h"

#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "experiments/flags/waiting.h"
#include "tools/base/file.h"

namespace pipelab {
namespace {

CapturedOutput* g_captured = nullptr;  // guarded by Waiting::Output

std::function<void(absl::string_view)>& Listener() {
  static auto* listener = new std::function<void(absl::string_view)>;
  return *listener;
}

}  // namespace

CapturedOutput::CapturedOutput() { g_captured = this; }
CapturedOutput::~CapturedOutput() { g_captured = nullptr; }
CapturedOutput* CapturedOutput::Current() { return g_captured; }

absl::Status WriteOutput(absl::string_view option, const std::string& path,
                         absl::string_view text) {
  if (path.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat(option, "=: is empty; give a file, or - for stdout"));
  }
  Waiting::Output output;
  if (g_captured != nullptr && (path == "-" || path[0] == ':')) {
    absl::StrAppend(&g_captured->texts_[path], text);
    return absl::OkStatus();
  }
  if (path == "-") {
    errno = 0;
    const bool whole = std::fwrite(text.data(), 1, text.size(), stdout) == text.size();
    if (whole && std::fflush(stdout) == 0) return absl::OkStatus();
    if (errno == EPIPE) return absl::OkStatus();  // `... | head` has seen enough
    return absl::DataLossError(absl::StrCat(option, option == "stdout" ? "" : "=-: stdout",
                                            " could not be written: ", std::strerror(errno)));
  }
  const absl::Status written = WriteFileAtomically(ResolveOutputPath(path, ""), text);
  if (written.ok()) {
    output.Keep(path);
    return written;
  }
  return absl::Status(written.code() == absl::StatusCode::kInvalidArgument
                          ? absl::StatusCode::kFailedPrecondition
                          : written.code(),
                      absl::StrCat(option, "=", path, ": ", written.message()));
}

void ListenToNews(std::function<void(absl::string_view json)> listener) {
  Listener() = std::move(listener);
}

void TellNews(absl::string_view json) {
  if (Listener()) Listener()(json);
}

bool StdoutHasColours() {
  const char* off = std::getenv("NO_COLOR");
  const char* terminal = std::getenv("TERM");
  const bool dumb = terminal != nullptr && std::strcmp(terminal, "dumb") == 0;
  return (off == nullptr || *off == '\0') && !dumb && isatty(STDOUT_FILENO) == 1;
}

}  // namespace pipelab
