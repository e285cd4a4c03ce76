#include "experiments/train/interrupt.h"

#include <atomic>

namespace pipelab {
namespace {

// Lock-free, as a signal handler needs.
std::atomic<bool> raised_signal{false};
static_assert(std::atomic<bool>::is_always_lock_free);

void Note(int) { raised_signal = true; }

}  // namespace

InterruptGuard::InterruptGuard() {
  raised_signal = false;
  struct sigaction note = {};
  note.sa_handler = Note;
  sigemptyset(&note.sa_mask);
  note.sa_flags = SA_RESETHAND | SA_RESTART;  // the second one ends the process
  sigaction(SIGINT, &note, &before_int_);
  sigaction(SIGTERM, &note, &before_term_);
}

InterruptGuard::~InterruptGuard() {
  sigaction(SIGINT, &before_int_, nullptr);
  sigaction(SIGTERM, &before_term_, nullptr);
}

bool InterruptGuard::raised() const { return raised_signal; }

}  // namespace pipelab
