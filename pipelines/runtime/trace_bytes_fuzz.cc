// Entry point for libFuzzer (how to run it: tools/build_defs/package.bzl), and for the seeded test
// beside it. What another process sends as its trace is written again, and can be named.
#include <cstddef>
#include <cstdint>
#include <string>

#include "absl/strings/string_view.h"
#include "pipelines/ir/program.h"
#include "pipelines/runtime/gather_trace.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const absl::string_view bytes(reinterpret_cast<const char*>(data), size);
  const auto trace = pipelab::TraceFromBytes(bytes);
  if (!trace.ok()) return 0;
  if (pipelab::TraceToBytes(*trace) != bytes) __builtin_trap();
  for (const pipelab::DeviceTrace& device : trace->devices) {
    for (const pipelab::Span& span : device.spans) {
      if (*pipelab::OpCodeName(span.op) == '?' || pipelab::KindLetter(span.action.kind) == '?') {
        __builtin_trap();
      }
    }
  }
  return 0;
}
