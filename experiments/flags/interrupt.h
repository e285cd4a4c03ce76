// Ctrl-C as a question that a loop asks between steps.
//
//   const InterruptGuard interrupt;
//   while (!interrupt.raised()) Step();
//
// While a guard lives, the first SIGINT, SIGTERM or SIGHUP is only noted; a second one ends the
// process as usual. SIGHUP stays ignored where it was (nohup). One guard at a time.
#ifndef PIPELAB_EXPERIMENTS_FLAGS_INTERRUPT_H_
#define PIPELAB_EXPERIMENTS_FLAGS_INTERRUPT_H_

#include "tools/base/signal_handler.h"

namespace pipelab {

class InterruptGuard {
 public:
  InterruptGuard();
  ~InterruptGuard();
  InterruptGuard(const InterruptGuard&) = delete;
  InterruptGuard& operator=(const InterruptGuard&) = delete;

  bool raised() const;

 private:
  SignalAction before_int_, before_term_, before_hup_;
};

}  // namespace pipelab

#endif  // PIPELAB_EXPERIMENTS_FLAGS_INTERRUPT_H_
