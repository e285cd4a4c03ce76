#include "tools/base/signal_handler.h"

namespace pipelab {

void CatchSignal(int signal, void (*handler)(int), struct sigaction* before) {
  alignas(16) static char memory[64 << 10];
  stack_t stack = {};
  stack.ss_sp = memory;
  stack.ss_size = sizeof(memory);
  sigaltstack(&stack, nullptr);
  struct sigaction action = {};
  action.sa_handler = handler;
  sigemptyset(&action.sa_mask);
  action.sa_flags = SA_RESETHAND | SA_RESTART | SA_ONSTACK;
  sigaction(signal, &action, before);
}

}  // namespace pipelab
