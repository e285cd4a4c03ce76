// Entry point for libFuzzer (how to run it: tools/build_defs/package.bzl), and for the seeded test
// beside it. What another process sends as its trace is written again, and belongs to a program
// with lists of as many instructions.
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
  pipelab::Program program;
  for (const pipelab::DeviceTrace& device : trace->devices) {
    program.instructions.emplace_back(device.spans.size());
  }
  for (size_t d = 0; d < trace->devices.size(); ++d) {
    for (const pipelab::ExecutedInstruction& span : SpansOf(program, *trace, d)) {
      if (span.op != pipelab::OpCode::kCompute) __builtin_trap();
    }
    for (const pipelab::ExecutedInstruction& copy : HostCopiesOf(program, *trace, d)) {
      if (copy.op != pipelab::OpCode::kCompute) __builtin_trap();
    }
  }
  return 0;
}
