#include "experiments/flags/interrupt.h"

#include <atomic>
#include <csignal>

namespace pipelab {
namespace {

// Lock-free, as a signal handler needs.
std::atomic<bool> raised_signal{false};
static_assert(std::atomic<bool>::is_always_lock_free);

void Note(int) { raised_signal = true; }

}  // namespace

InterruptGuard::InterruptGuard() {
  raised_signal = false;
  CatchSignal(SIGINT, Note, &before_int_);
  CatchSignal(SIGTERM, Note, &before_term_);
}

InterruptGuard::~InterruptGuard() {
  RestoreSignal(SIGINT, before_int_);
  RestoreSignal(SIGTERM, before_term_);
}

bool InterruptGuard::raised() const { return raised_signal; }

}  // namespace pipelab
