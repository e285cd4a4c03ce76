// A signal handler that may come at any time, on a stack of its own.
//
//   CatchSignal(SIGINT, Note);        // from the main thread, which gets a process's signals
//
// A handler's frame goes where the stack pointer points, and oneDNN's products for AVX use that
// register for data while they run: without a stack of its own, a signal then overwrites memory.
#ifndef PIPELAB_TOOLS_BASE_SIGNAL_HANDLER_H_
#define PIPELAB_TOOLS_BASE_SIGNAL_HANDLER_H_

#include <csignal>

namespace pipelab {

// Calls `handler` once. Another such signal within half a second counts as the same one (`timeout`
// sends two); a later one does what it does by default. System calls go on. `before`, if not null,
// is set to what was there.
void CatchSignal(int signal, void (*handler)(int), struct sigaction* before = nullptr);

}  // namespace pipelab

#endif  // PIPELAB_TOOLS_BASE_SIGNAL_HANDLER_H_
