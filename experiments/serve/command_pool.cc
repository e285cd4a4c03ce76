#include "experiments/serve/command_pool.h"

#include <poll.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <utility>

#include "absl/flags/commandlineflag.h"
#include "absl/flags/reflection.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "experiments/flags/flags.h"
#include "experiments/serve/command_process.h"
#include "experiments/serve/http_head.h"
#include "tools/base/file.h"
#include "tools/base/status_macros.h"

namespace pipelab {
namespace {

constexpr absl::Duration kTick = absl::Milliseconds(50);  // between looks at who still waits
constexpr absl::Duration kStart = absl::Seconds(10);      // for a process to take its request
constexpr absl::Duration kGrace = absl::Seconds(5);       // for the best so far

CommandAnswer Refusal(int status, absl::string_view reason) { return {status, ErrorJson(reason)}; }

// The server's own options would be options of each command.
void ResetFlags() {
  std::vector<std::pair<std::string, std::string>> defaults;
  for (const auto& [name, value] : ResolvedFlags()) {
    const std::string unset = absl::FindCommandLineFlag(name)->DefaultValue();
    if (value != unset) defaults.emplace_back(name, unset);
  }
  SetFlagDefaults(defaults);
}

absl::Status WriteFiles(const std::string& folder,
                        const std::map<std::string, std::string>& files) {
  PIPELAB_RETURN_IF_ERROR(MakeDirectories(folder));
  for (const auto& [name, text] : files) {
    PIPELAB_RETURN_IF_ERROR(WriteFileAtomically(JoinPath(folder, name), text));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::unique_ptr<CommandPool>> CommandPool::Start(const ServeLimits& limits) {
  const char* temporary = getenv("TMPDIR");
  PIPELAB_ASSIGN_OR_RETURN(std::string folder,
                           MakeTemporaryDirectory(absl::StrCat(
                               temporary == nullptr ? "/tmp" : temporary, "/pipelab-serve-")));
  PIPELAB_ASSIGN_OR_RETURN(const Helpers helpers, StartHelpers(limits, folder));
  return std::unique_ptr<CommandPool>(new CommandPool(limits, helpers, std::move(folder)));
}

absl::StatusOr<CommandPool::Helpers> CommandPool::StartHelpers(const ServeLimits& limits,
                                                               const std::string& folder) {
  int control[2];
  if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, control) != 0) {
    return absl::UnavailableError("serve: no socket for the processes of requests");
  }
  const pid_t pid = fork();
  if (pid < 0) {
    close(control[0]);
    close(control[1]);
    return absl::UnavailableError("serve: no process for requests");
  }
  if (pid == 0) {
    // Clients wait for the end of sockets that the server has by now.
    CloseAllBut(control[1]);
    ResetFlags();
    KeepForking(control[1], folder, limits);
  }
  setpgid(pid, pid);  // as it does itself, whoever is first
  close(control[1]);
  return Helpers{control[0], pid};
}

namespace {

// The group has their number until the first one, which is our child, has been waited for.
void EndHelpers(int control, pid_t pid) {
  kill(-pid, SIGKILL);
  waitpid(pid, nullptr, 0);
  close(control);
}

}  // namespace

CommandPool::~CommandPool() {
  EndHelpers(helpers_.control, helpers_.pid);
  RemoveTree(folder_).IgnoreError();
}

absl::Status CommandPool::ReplaceHelpers(pid_t by) {
  const std::lock_guard<std::mutex> lock(helpers_mutex_);
  if (helpers_.pid != by) return absl::OkStatus();
  PIPELAB_ASSIGN_OR_RETURN(const Helpers others, StartHelpers(limits_, folder_));
  EndHelpers(helpers_.control, helpers_.pid);
  helpers_ = others;
  std::fputs("serve: the processes that fork commands ended; they are started again\n", stderr);
  const std::lock_guard<std::mutex> counting(mutex_);
  ++counts_.restarted;
  return absl::OkStatus();
}

absl::StatusOr<int> CommandPool::Fork(pid_t* by) {
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) {
    return absl::UnavailableError("no socket is free; try again soon");
  }
  // A process that is stopped takes nothing, and a send without a limit would wait for it.
  const timeval wait = {absl::ToInt64Seconds(kStart), 0};
  setsockopt(ends[0], SOL_SOCKET, SO_SNDTIMEO, &wait, sizeof(wait));
  const auto send = [&] {
    const std::lock_guard<std::mutex> lock(helpers_mutex_);
    *by = helpers_.pid;
    return SendSocket(helpers_.control, ends[1]);
  };
  const bool sent = send() || (ReplaceHelpers(*by).ok() && send());
  close(ends[1]);
  if (sent) return ends[0];
  close(ends[0]);
  return absl::UnavailableError("no process is free; try again soon");
}

absl::optional<CommandAnswer> CommandPool::TakePlace(absl::Time deadline, const Gone& gone) {
  std::unique_lock<std::mutex> lock(mutex_);
  ++counts_.calls;
  if (running_ >= limits_.running && waiting_ >= limits_.waiting) {
    ++counts_.refused;
    return Refusal(
        429, absl::StrCat("more than ", limits_.waiting, " requests wait already; try again soon"));
  }
  ++waiting_;
  bool left = false;
  while (running_ >= limits_.running && absl::Now() < deadline && !left) {
    freed_.wait_for(lock, absl::ToChronoMilliseconds(kTick));
    left = gone && gone();
  }
  --waiting_;
  if (running_ < limits_.running && !left) {
    ++running_;
    return absl::nullopt;
  }
  ++(left ? counts_.gone : counts_.timed_out);
  return Refusal(503, "other requests took all the time there was; try again soon");
}

std::unique_ptr<CommandPool::Running> CommandPool::Begin(absl::string_view command,
                                                         absl::string_view body, const Gone& gone) {
  const absl::Duration search =
      command == "synthesize" ? limits_.longest_search : absl::ZeroDuration();
  std::unique_ptr<Running> call(new Running(this, limits_.command_time + search));
  call->refusal_ = TakePlace(call->deadline_, gone);
  if (call->refusal_.has_value()) return call;
  call->has_place_ = true;
  // With a place: a body takes many times its size while it is read.
  absl::StatusOr<CommandRequest> request = ParseCommandRequest(command, body);
  if (!request.ok()) {
    call->refusal_ = AnswerOf(request.status());
    return call;
  }
  call->request_ = *std::move(request);
  call->refusal_ = call->Start(body);
  return call;
}

CommandAnswer CommandPool::Call(absl::string_view command, absl::string_view body,
                                const Gone& gone) {
  const std::unique_ptr<Running> call = Begin(command, body, gone);
  for (;;) {
    Running::Event event = call->Next(gone);
    if (event.is_answer) return std::move(event.answer);
  }
}

absl::optional<CommandAnswer> CommandPool::Running::Start(absl::string_view body) {
  {
    const std::lock_guard<std::mutex> lock(pool_->mutex_);
    folder_ = JoinPath(pool_->folder_, absl::StrCat(++pool_->folders_));
  }
  const absl::Status files = WriteFiles(folder_, request_.files);
  if (!files.ok()) return Refusal(503, files.message());
  pid_t by = 0;
  const absl::StatusOr<int> forked = pool_->Fork(&by);
  if (!forked.ok()) return Refusal(503, forked.status().message());
  fd_ = *forked;
  const FrameReader::Result start = AwaitStart();
  if (start != FrameReader::Result::kFrame) {
    // Those that take nothing are stopped.
    if (start == FrameReader::Result::kNothing) pool_->ReplaceHelpers(by).IgnoreError();
    return Answer(&Counts::failed, Refusal(503, "no process is free; try again soon")).answer;
  }
  if (!request_.id.empty()) {
    const std::lock_guard<std::mutex> lock(pool_->mutex_);
    pool_->sockets_of_ids_[request_.id] = fd_;
  }
  const std::string end(1, '\0');
  // A process that is gone already is found by Next.
  SendFrame(fd_, AnswerFrameKind::kRequest,
            absl::StrCat(request_.words[0], end, folder_, end, body));
  return absl::nullopt;
}

// kFrame: the process runs.
FrameReader::Result CommandPool::Running::AwaitStart() {
  AnswerFrame frame;
  // A second at least, so that helpers that are well are not replaced for a call that came late.
  const absl::Duration wait = std::clamp(deadline_ - absl::Now(), absl::Seconds(1), kStart);
  const auto got = reader_.Next(fd_, wait, pool_->limits_.answer_bytes, &frame);
  if (got != FrameReader::Result::kFrame) return got;
  const bool started =
      frame.kind == AnswerFrameKind::kStarted && absl::SimpleAtoi(frame.text, &pid_);
  return started ? got : FrameReader::Result::kEnd;
}

// A process that is stopped does not hear that its socket is closed, so it is killed by its number,
// which no other process has while the socket is open at its end.
void CommandPool::Running::Kill() const {
  pollfd other = {fd_, POLLRDHUP, 0};
  if (pid_ > 0 && poll(&other, 1, 0) == 0) kill(pid_, SIGKILL);
}

CommandPool::Running::~Running() {
  Kill();
  if (!folder_.empty()) RemoveTree(folder_).IgnoreError();
  {
    const std::lock_guard<std::mutex> lock(pool_->mutex_);
    const auto at = pool_->sockets_of_ids_.find(request_.id);
    if (at != pool_->sockets_of_ids_.end() && at->second == fd_) pool_->sockets_of_ids_.erase(at);
    // Its client had gone when there was news.
    if (fd_ >= 0 && !ended_) ++pool_->counts_.gone;
    if (fd_ >= 0) close(fd_);
    if (has_place_) --pool_->running_;
  }
  if (has_place_) pool_->freed_.notify_one();
}

CommandPool::Running::Event CommandPool::Running::Answer(int64_t Counts::*count,
                                                         CommandAnswer answer) {
  const std::lock_guard<std::mutex> lock(pool_->mutex_);
  ++(pool_->counts_.*count);
  ended_ = true;
  return {true, "", std::move(answer)};
}

CommandPool::Running::Event CommandPool::Running::TooLong() {
  return Answer(&Counts::timed_out,
                Refusal(504, absl::StrCat(request_.words[0], ": took longer than ",
                                          absl::FormatDuration(limit_),
                                          "; ask for less, or use the command line")));
}

CommandPool::Running::Event CommandPool::Running::Next(const Gone& gone) {
  if (refusal_.has_value()) return {true, "", *refusal_};
  const std::string& command = request_.words[0];
  const ServeLimits& limits = pool_->limits_;
  for (;;) {
    AnswerFrame frame;
    const auto got = reader_.Next(fd_, kTick, limits.answer_bytes, &frame);
    if (got == FrameReader::Result::kNothing) {
      if (gone && gone()) return Answer(&Counts::gone, Refusal(503, "nobody waits"));
      if (absl::Now() < deadline_) continue;
      // A search has something to show.
      if (command != "search" || stopped_) return TooLong();
      stopped_ = SendFrame(fd_, AnswerFrameKind::kStop, "");
      deadline_ += kGrace;
      continue;
    }
    if (got == FrameReader::Result::kEnd) {
      return Answer(&Counts::failed,
                    Refusal(500, absl::StrCat(command, ": ended without an answer; ask for less")));
    }
    if (frame.kind == AnswerFrameKind::kNews) return {false, std::move(frame.text), {}};
    if (frame.kind == AnswerFrameKind::kNoMemory) {
      return Answer(
          &Counts::failed,
          Refusal(503, absl::StrCat(command, ": needs more than ", limits.command_memory >> 20,
                                    " MiB of memory; ask for less, or use the command "
                                    "line")));
    }
    int status = 0;
    if (frame.text.size() > 3 && absl::SimpleAtoi(frame.text.substr(0, 3), &status)) {
      if (stopped_ && status != 200) return TooLong();  // it had found nothing
      return Answer(&Counts::answered, {status, frame.text.substr(3)});
    }
  }
}

bool CommandPool::Stop(const std::string& id) {
  const std::lock_guard<std::mutex> lock(mutex_);
  const auto at = sockets_of_ids_.find(id);
  return at != sockets_of_ids_.end() && SendFrame(at->second, AnswerFrameKind::kStop, "");
}

CommandPool::Counts CommandPool::counts() {
  const std::lock_guard<std::mutex> own(helpers_mutex_);
  const std::lock_guard<std::mutex> lock(mutex_);
  char note = 0;
  while (recv(helpers_.control, &note, 1, MSG_DONTWAIT) > 0) ++counts_.restarted;
  return counts_;
}

}  // namespace pipelab
