// What happened, or would happen, when a program ran: spans of time per device, memory and traffic.
// The simulator and the runtime both return one, and every figure (bubble, peak memory, throughput,
// timeline) is a function of a Trace (pipelines/analysis), so simulated and measured numbers are
// computed alike.
#ifndef PIPELAB_PIPELINES_IR_TRACE_H_
#define PIPELAB_PIPELINES_IR_TRACE_H_

#include <algorithm>
#include <cstdint>
#include <vector>

#include "models/graph/collective.h"  // IWYU pragma: export
#include "pipelines/ir/program.h"
#include "tools/base/units.h"

namespace pipelab {

// One executed instruction. Times are nanoseconds since the step began on any device.
struct Span {
  int32_t instruction = 0;  // index in the device's list
  OpCode op = OpCode::kCompute;
  Action action;
  int32_t arg = -1;
  int64_t begin_ns = 0, end_ns = 0;
  // Processor time of the device's thread (measured traces); else the duration less waiting.
  int64_t cpu_ns = 0;
  int64_t library_ns = 0;  // of which inside vendor library calls (measured traces)
};

struct DeviceTrace {
  std::vector<Span> spans;  // in instruction order, never overlapping
  Bytes peak_activation;  // activations, messages and workspace; not weights, gradients, optimizer
                          // state
  Bytes peak_state;       // weights, gradients, optimizer state
  Bytes bytes_sent;       // messages
  int64_t messages_sent = 0;
  Bytes collective_bytes;  // sent in reductions and gathers, by rings
  // What waits in the host's memory: the most at a time, and all that went there and back.
  Bytes peak_host, host_bytes;
  std::vector<Span> host_copies;  // kOffload and kReload, on the host link, one after the other
  // Sent within the device's tensor-parallel group, and to the devices with the other tokens of its
  // samples, by rings.
  Bytes tensor_bytes;
};

enum class TraceOrigin { kMeasured, kReplayed, kSimulated };

struct Trace {
  TraceOrigin origin = TraceOrigin::kSimulated;
  Nanoseconds makespan;  // from the first begin to the last end
  std::vector<DeviceTrace> devices;
};

// What the fullest device needs: state and activations, each at its own peak. Where the state is
// not constant, that can be more than there is at any time (sim/memory_levels.h: PeakMemory).
inline Bytes LargestDevice(const Trace& trace) {
  Bytes largest;
  for (const DeviceTrace& d : trace.devices) {
    largest = std::max(largest, d.peak_activation + d.peak_state);
  }
  return largest;
}

}  // namespace pipelab

#endif  // PIPELAB_PIPELINES_IR_TRACE_H_
