// A signal handler that may come at any time, on a stack of its own.
//
//   CatchSignal(SIGINT, Note);        // from the main thread, which gets a process's signals
//
// A handler's frame goes where the stack pointer points, and oneDNN's products for AVX use that
// register for data while they run: without a stack of its own, a signal then overwrites memory.
#ifndef PIPELAB_TOOLS_BASE_SIGNAL_HANDLER_H_
#define PIPELAB_TOOLS_BASE_SIGNAL_HANDLER_H_

#include <csignal>
#include <cstdint>

namespace pipelab {

// What a signal does: what RestoreSignal takes.
struct SignalAction {
  struct sigaction action = {};
  void (*handler)(int) = nullptr;  // CatchSignal's, if that was there
  int64_t first = 0;
};

// Calls `handler` once. Another such signal within half a second counts as the same one (`timeout`
// sends two); a later one does what it does by default. System calls go on. `before`, if not null,
// is set to what was there.
void CatchSignal(int signal, void (*handler)(int), SignalAction* before = nullptr);
void RestoreSignal(int signal, const SignalAction& before);

}  // namespace pipelab

#endif  // PIPELAB_TOOLS_BASE_SIGNAL_HANDLER_H_
