// A program that the system gives no more memory or threads ends with one line and exit code 1,
// wherever that happens.
//
//   PIPELAB_HANDLES_EXHAUSTION;                         // once in a program, in main's file
//   EndWithout("memory", "a block of 137 GB");          // where something else than `new` fails
#ifndef PIPELAB_TOOLS_BASE_EXHAUSTION_H_
#define PIPELAB_TOOLS_BASE_EXHAUSTION_H_

#include "absl/strings/string_view.h"

namespace pipelab {

// A failing `new` and a thread that cannot start then call EndWithout; other uncaught exceptions
// abort as before.
void HandleExhaustion();

// Calls it before the constructors of all libraries, which take memory, too.
#define PIPELAB_HANDLES_EXHAUSTION                                                 \
  __attribute__((section(".preinit_array"), used)) static void (*const kFirst)() = \
      &pipelab::HandleExhaustion

// Writes "out of WHAT: DETAIL" without taking memory.
[[noreturn]] void EndWithout(absl::string_view what, absl::string_view detail);

}  // namespace pipelab

#endif  // PIPELAB_TOOLS_BASE_EXHAUSTION_H_
