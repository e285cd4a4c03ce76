#include "tools/base/signal_handler.h"

#include <array>
#include <atomic>
#include <cerrno>
#include <cstdint>
#include <ctime>

namespace pipelab {
namespace {

// Signals nearer than this to the first are the same one: `timeout` and wrappers of programs send
// theirs to the process and to its group.
constexpr int64_t kSameNanoseconds = 500'000'000;

struct Caught {
  std::atomic<void (*)(int)> handler{nullptr};
  std::atomic<int64_t> first{0};  // 0: none came yet
};
static_assert(std::atomic<void (*)(int)>::is_always_lock_free);
static_assert(std::atomic<int64_t>::is_always_lock_free);

std::array<Caught, NSIG> caught;

int64_t Now() {
  timespec now = {};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return int64_t{now.tv_sec} * 1'000'000'000 + now.tv_nsec;
}

void Handle(int signal) {
  const int before = errno;
  Caught& mine = caught[signal];
  const int64_t now = Now();
  int64_t none = 0;
  if (mine.first.compare_exchange_strong(none, now)) {
    mine.handler.load()(signal);
  } else if (now - none >= kSameNanoseconds) {
    std::signal(signal, SIG_DFL);
    std::raise(signal);  // delivered as this handler returns
  }
  errno = before;
}

}  // namespace

void CatchSignal(int signal, void (*handler)(int), SignalAction* before) {
  alignas(16) static char memory[64 << 10];
  stack_t stack = {};
  stack.ss_sp = memory;
  stack.ss_size = sizeof(memory);
  sigaltstack(&stack, nullptr);
  if (before != nullptr) {
    before->handler = caught[signal].handler;
    before->first = caught[signal].first;
  }
  caught[signal].handler = handler;
  caught[signal].first = 0;
  struct sigaction action = {};
  action.sa_handler = Handle;
  sigemptyset(&action.sa_mask);
  action.sa_flags = SA_RESTART | SA_ONSTACK;
  sigaction(signal, &action, before == nullptr ? nullptr : &before->action);
}

void RestoreSignal(int signal, const SignalAction& before) {
  sigaction(signal, &before.action, nullptr);
  caught[signal].handler = before.handler;
  caught[signal].first = before.first;
}

}  // namespace pipelab
