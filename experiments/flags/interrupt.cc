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
  CatchSignal(SIGHUP, Note, &before_hup_);
  if (before_hup_.action.sa_handler == SIG_IGN) RestoreSignal(SIGHUP, before_hup_);
}

InterruptGuard::~InterruptGuard() {
  RestoreSignal(SIGINT, before_int_);
  RestoreSignal(SIGTERM, before_term_);
  RestoreSignal(SIGHUP, before_hup_);
}

bool InterruptGuard::raised() const { return raised_signal; }

}  // namespace pipelab
