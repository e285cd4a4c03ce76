#include "experiments/flags/waiting.h"

#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <system_error>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "tools/base/progress.h"
#include "tools/base/signal_handler.h"

namespace pipelab {
namespace {

constexpr absl::Duration kLongestOutput = absl::Milliseconds(800);

std::atomic<int> g_interrupts{-1};  // the pipe's end that the handler writes to
static_assert(std::atomic<int>::is_always_lock_free);
std::atomic<bool> g_hushed{false};

// What follows is guarded by Mutex(); not absl::Mutex, which ThreadSanitizer cannot see through
// here.
Waiting* g_current = nullptr;

std::timed_mutex& Mutex() {
  static auto* mutex = new std::timed_mutex;
  return *mutex;
}

std::string& Kept() {
  static auto* kept = new std::string;
  return *kept;
}

void NoteInterrupt(int) {
  const int before = errno;
  const char byte = 1;
  if (write(g_interrupts.load(), &byte, 1) < 0) errno = before;
}

void WriteToStandardError(absl::string_view text) {
  std::fwrite(text.data(), 1, text.size(), stderr);
  std::fflush(stderr);
}

// Studies of `all`, downloads: nothing goes on in the background.
void EndChildren() {
  std::error_code error;
  for (const auto& task : std::filesystem::directory_iterator("/proc/self/task", error)) {
    std::ifstream children(task.path() / "children");
    for (pid_t pid = 0; children >> pid;) kill(pid, SIGTERM);
  }
}

}  // namespace

Waiting::Waiting(absl::string_view label, WaitingOptions options)
    : label_(label),
      options_(std::move(options)),
      start_(absl::Now()),
      said_(absl::InfinitePast()) {
  if (!options_.write) {
    options_.write = WriteToStandardError;
    options_.terminal = isatty(STDERR_FILENO) != 0;
    if (!options_.terminal) options_.silent = options_.interval = absl::Seconds(30);
  }
  if (pipe2(ends_, O_CLOEXEC) != 0) return;  // without a line then, and SIGINT as usual
  {
    const std::lock_guard<std::timed_mutex> lock(Mutex());
    g_current = this;
    Kept().clear();
  }
  struct sigaction now = {};
  if (options_.takes_interrupts && sigaction(SIGINT, nullptr, &now) == 0 &&
      now.sa_handler == SIG_DFL) {
    g_interrupts.store(ends_[1]);
    CatchSignal(SIGINT, NoteInterrupt);
  }
  thread_ = std::thread([this] { Loop(); });
}

Waiting::~Waiting() {
  if (!thread_.joinable()) return;
  if (g_interrupts.exchange(-1) >= 0) std::signal(SIGINT, SIG_DFL);
  close(ends_[1]);
  thread_.join();
  close(ends_[0]);
  const std::lock_guard<std::timed_mutex> lock(Mutex());
  Clear();
  g_current = nullptr;
}

Waiting::Output::Output() : lock_(Mutex()) {
  if (g_current != nullptr) g_current->Clear();
}

void Waiting::Output::Keep(absl::string_view what) { Kept() = std::string(what); }

void Waiting::Say(absl::string_view line) {
  const Output output;
  const std::string text = absl::StrCat(line, "\n");
  if (g_current == nullptr) return WriteToStandardError(text);
  g_current->said_ = absl::Now();
  g_current->options_.write(text);
}

void Waiting::Hush() { g_hushed = true; }

void Waiting::Loop() {
  absl::Duration wait = options_.silent;
  pollfd ready = {ends_[0], POLLIN, 0};
  while (true) {
    const int events = poll(&ready, 1, static_cast<int>(absl::ToInt64Milliseconds(wait)));
    if (events < 0 && errno == EINTR) continue;
    if ((ready.revents & POLLIN) != 0 && events > 0) return Interrupt();
    if (events != 0) return;  // closed: the end
    Show(absl::Now() - start_);
    wait = options_.interval;
  }
}

void Waiting::Show(absl::Duration time) {
  const std::lock_guard<std::timed_mutex> lock(Mutex());
  if (Progress::Shown() || g_hushed) return;
  if (!options_.terminal && absl::Now() - said_ < options_.interval) return;
  const std::string line =
      absl::StrCat(label_, ": ", absl::ToInt64Seconds(time), " s; Ctrl-C ends it");
  // On a terminal the cursor goes back, so that whatever is printed next begins a line.
  options_.write(absl::StrCat(line, options_.terminal ? "\r" : "\n"));
  width_ = options_.terminal ? line.size() : 0;
}

void Waiting::Clear() {
  if (width_ > 0) options_.write(absl::StrCat(std::string(width_, ' '), "\r"));
  width_ = 0;
}

void Waiting::Interrupt() {
  const bool whole = Mutex().try_lock_for(absl::ToChronoMilliseconds(kLongestOutput));
  if (whole) Clear();
  const std::string kept = !whole           ? "while a result was being written"
                           : Kept().empty() ? "no result is kept"
                                            : absl::StrCat("kept ", Kept());
  options_.write(absl::StrCat(options_.terminal ? "\r" : "", label_, ": interrupted after ",
                              absl::ToInt64Seconds(absl::Now() - start_), " s; ", kept, "\n"));
  EndChildren();
  _exit(kInterrupted);
}

}  // namespace pipelab
