#include "tools/base/process.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <system_error>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/time/clock.h"
#include "tools/base/file.h"
#include "tools/base/status_macros.h"

extern char** environ;

namespace pipelab {
namespace {

// A pipe whose ends close themselves. Closed on exec: other threads may be starting programs too.
struct Pipe {
  int read_end = -1, write_end = -1;
  absl::Status Open() {
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) != 0) {
      return absl::ResourceExhaustedError(absl::StrCat("no pipe: ", ErrnoText(errno)));
    }
    read_end = ends[0];
    write_end = ends[1];
    fcntl(read_end, F_SETFL, O_NONBLOCK);
    return absl::OkStatus();
  }
  void CloseWriteEnd() {
    if (write_end >= 0) close(write_end);
    write_end = -1;
  }
  void CloseReadEnd() {
    if (read_end >= 0) close(read_end);
    read_end = -1;
  }
  ~Pipe() {
    CloseWriteEnd();
    CloseReadEnd();
  }
};

// Takes what the pipe holds now, keeping at most `limit` bytes in all. Closes it at its end.
void Drain(Pipe& pipe, int64_t limit, std::string& text,
           const std::function<void(absl::string_view)>& listener = nullptr) {
  char buffer[1 << 16];
  while (pipe.read_end >= 0) {
    const ssize_t n = read(pipe.read_end, buffer, sizeof(buffer));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0 && errno == EAGAIN) return;
    if (n <= 0) return pipe.CloseReadEnd();
    if (listener) listener(absl::string_view(buffer, n));
    const int64_t room = limit - static_cast<int64_t>(text.size());
    text.append(buffer, std::max<int64_t>(0, std::min<int64_t>(n, room)));
  }
}

std::vector<std::string> Environment(const ProcessOptions& options) {
  std::vector<std::string> result;
  for (const auto& [name, value] : options.environment)
    result.push_back(absl::StrCat(name, "=", value));
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const bool replaced =
        std::any_of(options.environment.begin(), options.environment.end(),
                    [&](const auto& e) { return absl::StartsWith(*entry, e.first + "="); });
    if (!replaced) result.push_back(*entry);
  }
  return result;
}

std::vector<char*> Pointers(std::vector<std::string>& strings) {
  std::vector<char*> pointers;
  for (std::string& s : strings) pointers.push_back(s.data());
  pointers.push_back(nullptr);
  return pointers;
}

// In a process group of its own it can be killed with its children.
absl::StatusOr<pid_t> Start(std::vector<std::string> arguments, const ProcessOptions& options,
                            const Pipe& output, const Pipe& error) {
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_adddup2(&actions, output.write_end, 1);
  posix_spawn_file_actions_adddup2(&actions, error.write_end, 2);
  if (!options.directory.empty()) {
    posix_spawn_file_actions_addchdir_np(&actions, options.directory.c_str());
  }
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  if (options.own_group) {
    posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP);
    posix_spawnattr_setpgroup(&attributes, 0);
  }
  std::vector<std::string> environment = Environment(options);
  pid_t pid = 0;
  const int failed = posix_spawnp(&pid, arguments[0].c_str(), &actions, &attributes,
                                  Pointers(arguments).data(), Pointers(environment).data());
  posix_spawn_file_actions_destroy(&actions);
  posix_spawnattr_destroy(&attributes);
  if (failed == 0) return pid;
  const std::string text =
      absl::StrCat("program '", arguments[0], "' cannot be run: ", ErrnoText(failed));
  return failed == ENOENT ? absl::NotFoundError(text) : absl::UnavailableError(text);
}

}  // namespace

absl::StatusOr<ProcessResult> RunProcess(const std::vector<std::string>& arguments,
                                         const ProcessOptions& options) {
  if (arguments.empty()) return absl::InvalidArgumentError("no program to run was given");
  if (!options.directory.empty() && !PathExists(options.directory)) {
    return absl::NotFoundError(absl::StrCat("folder '", options.directory, "' to run '",
                                            arguments[0], "' in does not exist"));
  }
  Pipe output, error;
  PIPELAB_RETURN_IF_ERROR(output.Open());
  PIPELAB_RETURN_IF_ERROR(error.Open());
  PIPELAB_ASSIGN_OR_RETURN(const pid_t pid, Start(arguments, options, output, error));
  output.CloseWriteEnd();
  error.CloseWriteEnd();

  ProcessResult result;
  const absl::Time deadline = absl::Now() + options.timeout;
  int wait_status = 0;
  // Ends with the program, not with its pipes: a child it left behind may hold them open for ever.
  while (waitpid(pid, &wait_status, WNOHANG) == 0) {
    if (absl::Now() >= deadline) {
      kill(options.own_group ? -pid : pid, SIGKILL);
      waitpid(pid, &wait_status, 0);
      return absl::DeadlineExceededError(absl::StrCat("'", arguments[0], "' was stopped after ",
                                                      absl::FormatDuration(options.timeout)));
    }
    pollfd ready[] = {{output.read_end, POLLIN, 0}, {error.read_end, POLLIN, 0}};
    poll(ready, 2, /*milliseconds=*/10);  // a closed end is -1, which poll() skips
    Drain(output, options.output_limit, result.output);
    Drain(error, options.output_limit, result.error, options.on_error);
  }
  Drain(output, options.output_limit, result.output);
  Drain(error, options.output_limit, result.error, options.on_error);
  result.exit_code =
      WIFSIGNALED(wait_status) ? 128 + WTERMSIG(wait_status) : WEXITSTATUS(wait_status);
  return result;
}

absl::StatusOr<std::string> OwnProgram() {
  std::error_code error;
  const std::filesystem::path self = std::filesystem::read_symlink("/proc/self/exe", error);
  if (error) return absl::InternalError(absl::StrCat("/proc/self/exe: ", error.message()));
  return self.string();
}

absl::StatusOr<std::string> BesideOwnProgram(absl::string_view name) {
  PIPELAB_ASSIGN_OR_RETURN(const std::string self, OwnProgram());
  return absl::StrCat(self.substr(0, self.rfind('/') + 1), name);
}

std::string LastLine(absl::string_view text) {
  const std::vector<absl::string_view> lines = absl::StrSplit(text, '\n');
  for (auto line = lines.rbegin(); line != lines.rend(); ++line) {
    const absl::string_view stripped = absl::StripAsciiWhitespace(*line);
    if (!stripped.empty()) return std::string(stripped);
  }
  return "";
}

}  // namespace pipelab
