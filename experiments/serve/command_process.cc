#include "experiments/serve/command_process.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <initializer_list>
#include <mutex>
#include <new>
#include <system_error>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/time/clock.h"
#include "experiments/flags/output.h"
#include "experiments/serve/command_answer.h"
#include "experiments/serve/command_request.h"
#include "tools/base/file.h"

namespace pipelab {
namespace {

constexpr size_t kHead = 5;  // kind, and the length in four bytes

bool SendAll(int fd, absl::string_view text) {
  while (!text.empty()) {
    const ssize_t sent = send(fd, text.data(), text.size(), MSG_NOSIGNAL);
    if (sent < 0 && errno == EINTR) continue;
    if (sent <= 0) return false;
    text.remove_prefix(static_cast<size_t>(sent));
  }
  return true;
}

// One SCM_RIGHTS message.
struct SocketMessage {
  SocketMessage() {
    part = {&byte, 1};
    message.msg_iov = &part;
    message.msg_iovlen = 1;
    message.msg_control = room.data();
    message.msg_controllen = room.size();
  }
  char byte = 0;
  iovec part = {};
  alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(int))> room = {};
  msghdr message = {};
};

int ReceiveSocket(int control) {
  SocketMessage m;
  ssize_t size = 0;
  do {
    size = recvmsg(control, &m.message, MSG_CMSG_CLOEXEC);
  } while (size < 0 && errno == EINTR);
  const cmsghdr* head = size > 0 ? CMSG_FIRSTHDR(&m.message) : nullptr;
  if (head == nullptr || head->cmsg_type != SCM_RIGHTS) return -1;
  int fd = -1;
  std::memcpy(&fd, CMSG_DATA(head), sizeof(fd));
  return fd;
}

int g_socket = -1;  // of this process's call

// Without memory nothing may be allocated: a frame as it goes over the socket.
void SayNoMemory() {
  constexpr char frame[kHead] = {static_cast<char>(AnswerFrameKind::kNoMemory), 0, 0, 0, 0};
  const ssize_t unused = send(g_socket, frame, sizeof(frame), MSG_NOSIGNAL);
  (void)unused;
  _exit(1);
}

void SetLimits(const ServeLimits& limits) {
  // Libraries and their stacks are there already.
  int64_t pages = 0;
  std::ifstream("/proc/self/statm") >> pages;
  const auto most = static_cast<rlim_t>(pages * sysconf(_SC_PAGESIZE) + limits.command_memory);
  const rlimit memory = {most, most}, none = {0, 0};
  setrlimit(RLIMIT_AS, &memory);
  setrlimit(RLIMIT_CORE, &none);
  std::set_new_handler(SayNoMemory);
  // Should the server be gone without closing its sockets.
  alarm(static_cast<unsigned>(absl::ToInt64Seconds(limits.command_time + limits.longest_search) +
                              60));
}

// Ends the process with its client. A stop is Ctrl-C, once: a second one would end the command.
void Watch() {
  FrameReader reader;
  AnswerFrame frame;
  for (bool stopped = false;;) {
    const auto got = reader.Next(g_socket, absl::Seconds(3600), kHead, &frame);
    if (got == FrameReader::Result::kEnd) _exit(0);
    if (got == FrameReader::Result::kFrame && !stopped) {
      stopped = true;
      kill(getpid(), SIGINT);
    }
  }
}

void Silence(std::initializer_list<int> fds) {
  const int nothing = open("/dev/null", O_RDWR | O_CLOEXEC);
  for (const int fd : fds) dup2(nothing, fd);
  close(nothing);
}

[[noreturn]] void AnswerOneCall(const ServeLimits& limits) {
  Silence({STDERR_FILENO});
  SetLimits(limits);
  FrameReader reader;
  AnswerFrame frame;
  if (reader.Next(g_socket, absl::Seconds(10), limits.body_bytes + 4096, &frame) !=
      FrameReader::Result::kFrame) {
    _exit(1);
  }
  const std::vector<std::string> parts = absl::StrSplit(frame.text, absl::MaxSplits('\0', 2));
  if (parts.size() != 3 || chdir(parts[1].c_str()) != 0) _exit(1);
  try {
    std::thread(Watch).detach();
  } catch (const std::system_error&) {  // no room for its stack
    SayNoMemory();
  }
  static auto* sending = new std::mutex;  // news may come from a search's threads
  ListenToNews([](absl::string_view json) {
    const std::lock_guard<std::mutex> lock(*sending);
    SendFrame(g_socket, AnswerFrameKind::kNews, json);
  });
  const absl::StatusOr<CommandRequest> request = ParseCommandRequest(parts[0], parts[2]);
  const CommandAnswer answer =
      request.ok() ? AnswerCommand(*request, limits) : AnswerOf(request.status());
  const std::lock_guard<std::mutex> lock(*sending);
  SendFrame(g_socket, AnswerFrameKind::kAnswer, absl::StrCat(answer.status, answer.body));
  _exit(0);
}

// Forks for each socket that comes, as long as its keeper is there.
void ForkWhileKept(int control, pid_t keeper, const ServeLimits& limits) {
  std::signal(SIGCHLD, SIG_IGN);  // no zombies
  while (getppid() == keeper) {
    const int fd = ReceiveSocket(control);
    if (fd < 0) _exit(0);
    const pid_t pid = fork();
    if (pid == 0) {
      setpgid(0, 0);  // it stays where those that fork are ended
      close(control);
      g_socket = fd;
      AnswerOneCall(limits);
    }
    if (pid > 0) SendFrame(fd, AnswerFrameKind::kStarted, absl::StrCat(pid));
    close(fd);  // also after a fork that failed: its call then hears of the end
  }
}

// Waits until the process has ended. Where it is stopped it answers nobody, so it is killed.
void AwaitFailure(pid_t pid) {
  for (;;) {
    int status = 0;
    const pid_t one = waitpid(-1, &status, WUNTRACED);
    if (one < 0 && errno != EINTR) return;
    if (one != pid) continue;
    if (!WIFSTOPPED(status)) return;
    kill(pid, SIGKILL);
  }
}

}  // namespace

bool SendFrame(int fd, AnswerFrameKind kind, absl::string_view text) {
  char head[kHead] = {static_cast<char>(kind)};
  const auto size = static_cast<uint32_t>(text.size());
  std::memcpy(head + 1, &size, sizeof(size));
  return SendAll(fd, absl::string_view(head, kHead)) && SendAll(fd, text);
}

FrameReader::Result FrameReader::Next(int fd, absl::Duration wait, size_t most,
                                      AnswerFrame* frame) {
  const absl::Time end = absl::Now() + wait;
  for (;;) {
    uint32_t size = 0;
    if (buffer_.size() >= kHead) std::memcpy(&size, buffer_.data() + 1, sizeof(size));
    if (size > most) return Result::kEnd;
    if (buffer_.size() >= kHead + size) {
      frame->kind = static_cast<AnswerFrameKind>(buffer_[0]);
      frame->text = buffer_.substr(kHead, size);
      buffer_.erase(0, kHead + size);
      return Result::kFrame;
    }
    buffer_.reserve(kHead + size);
    pollfd ready = {fd, POLLIN, 0};
    const int64_t left = absl::ToInt64Milliseconds(end - absl::Now());
    const int events = poll(&ready, 1, static_cast<int>(left > 0 ? left : 0));
    if (events == 0) return Result::kNothing;
    if (events < 0 && errno == EINTR) continue;
    static thread_local std::array<char, 1 << 16> part;
    const ssize_t got = recv(fd, part.data(), part.size(), MSG_DONTWAIT);
    if (got < 0 && (errno == EINTR || errno == EAGAIN)) continue;
    if (got <= 0) return Result::kEnd;
    buffer_.append(part.data(), static_cast<size_t>(got));
  }
}

bool SendSocket(int control, int fd) {
  SocketMessage m;
  cmsghdr* head = CMSG_FIRSTHDR(&m.message);
  head->cmsg_level = SOL_SOCKET;
  head->cmsg_type = SCM_RIGHTS;
  head->cmsg_len = CMSG_LEN(sizeof(int));
  std::memcpy(CMSG_DATA(head), &fd, sizeof(fd));
  return sendmsg(control, &m.message, MSG_NOSIGNAL) > 0;
}

void CloseAllBut(int fd) {
  if (fd > STDERR_FILENO + 1) close_range(STDERR_FILENO + 1, fd - 1, 0);
  close_range(fd + 1, ~0U, 0);
}

void KeepForking(int control, const std::string& folder, const ServeLimits& limits) {
  setpgid(0, 0);  // the terminal's Ctrl-C is the server's
  std::signal(SIGINT, SIG_IGN);
  std::signal(SIGTERM, SIG_DFL);
  // Where `bazel run` was called must not be where a request's files are looked for.
  unsetenv("BUILD_WORKING_DIRECTORY");
  unsetenv("BUILD_WORKSPACE_DIRECTORY");
  Silence({STDIN_FILENO, STDOUT_FILENO});
  for (;;) {
    std::signal(SIGCHLD, SIG_DFL);
    const pid_t keeper = getpid();
    const pid_t pid = fork();
    if (pid == 0) {
      ForkWhileKept(control, keeper, limits);
      continue;  // in the place of its keeper
    }
    if (pid > 0) AwaitFailure(pid);
    pollfd server = {control, POLLRDHUP, 0};
    if (poll(&server, 1, 0) > 0) break;
    constexpr absl::string_view note =
        "serve: the process that forks commands ended; it is started again\n";
    ssize_t unused = write(STDERR_FILENO, note.data(), note.size());
    unused = send(control, "", 1, MSG_DONTWAIT | MSG_NOSIGNAL);
    (void)unused;
    absl::SleepFor(absl::Milliseconds(100));  // it may fail again at once
  }
  RemoveTree(folder).IgnoreError();
  _exit(0);
}

}  // namespace pipelab
