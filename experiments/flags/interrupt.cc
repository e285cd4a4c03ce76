#include "experiments/flags/interrupt.h"

#include <atomic>

#include "tools/base/signal_handler.h"

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
  sigaction(SIGINT, &before_int_, nullptr);
  sigaction(SIGTERM, &before_term_, nullptr);
}

bool InterruptGuard::raised() const { return raised_signal; }

}  // namespace pipelab
