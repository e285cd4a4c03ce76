// What happened, or would happen, when a program ran: spans of time per device, memory and traffic.
// The simulator and the runtime both return one, and every figure (bubble, peak memory, throughput,
// timeline) is a function of a Program and its Trace (pipelines/analysis), so simulated and
// measured numbers are computed alike.
//
//   for (const ExecutedInstruction& i : SpansOf(program, trace, /*device=*/0)) {
//     if (i.op == OpCode::kCompute) busy += i.end_ns - i.begin_ns;
//   }
//
// A trace has only times. What ran then is in the program, and SpansOf joins the two.
#ifndef PIPELAB_PIPELINES_IR_TRACE_H_
#define PIPELAB_PIPELINES_IR_TRACE_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "models/graph/collective.h"  // IWYU pragma: export
#include "pipelines/ir/program.h"
#include "tools/base/units.h"

namespace pipelab {

// When an instruction was executed: nanoseconds since the step began on any device. There is one of
// each instruction, millions in large schedules, so nothing is in it that the program says.
struct Span {
  int64_t begin_ns = 0, end_ns = 0;
  // Processor time of the device's thread (measured traces); else the duration less waiting.
  int64_t cpu_ns = 0;
};

// A kOffload or kReload on the device's host link.
struct HostCopy : Span {
  int64_t instruction = 0;  // index in the device's list
};

struct DeviceTrace {
  // As they were executed, never overlapping: one of each instruction of the device's list, or none
  // where the trace has only totals.
  std::vector<Span> spans;
  // [span] Its index in the list, where they were not executed in the order of the list
  // (ExecutorOptions::first_come); else empty.
  std::vector<int32_t> order;
  std::vector<int64_t> library_ns;  // [span] inside vendor library calls; empty: none
  Bytes peak_activation;  // activations, messages and workspace; not weights, gradients, optimizer
                          // state
  Bytes peak_state;       // weights, gradients, optimizer state
  Bytes bytes_sent;       // messages
  int64_t messages_sent = 0;
  Bytes collective_bytes;  // sent in reductions and gathers, by rings
  // What waits in the host's memory: the most at a time, and all that went there and back.
  Bytes peak_host, host_bytes;
  std::vector<HostCopy> host_copies;  // one after the other
  // Sent within the device's tensor-parallel group, and to the devices with the other tokens of its
  // samples, by rings.
  Bytes tensor_bytes;

  void AddToTimes(int64_t ns);
  void DropTimes();  // and keep the totals
};

enum class TraceOrigin { kMeasured, kReplayed, kSimulated };

struct Trace {
  TraceOrigin origin = TraceOrigin::kSimulated;
  Nanoseconds makespan;  // from the first begin to the last end
  std::vector<DeviceTrace> devices;
};

// A span with what the program says about it.
struct ExecutedInstruction : Instruction, Span {
  int32_t instruction = 0;  // index in the device's list
  int64_t library_ns = 0;   // of cpu_ns
};

// The spans of a device. It keeps references to the program's list and to the trace.
class DeviceSpans {
 public:
  class Iterator {
   public:
    Iterator(const DeviceSpans* spans, size_t n) : spans_(spans), n_(n) {}
    ExecutedInstruction operator*() const { return (*spans_)[n_]; }
    Iterator& operator++() {
      ++n_;
      return *this;
    }
    bool operator!=(const Iterator& other) const { return n_ != other.n_; }

   private:
    const DeviceSpans* spans_;
    size_t n_;
  };

  // `list` is the one that ran (CheckBelongs).
  DeviceSpans(const std::vector<Instruction>& list, const DeviceTrace& trace)
      : list_(list), trace_(trace) {}

  ExecutedInstruction operator[](size_t n) const {
    const int32_t at = trace_.order.empty() ? static_cast<int32_t>(n) : trace_.order[n];
    return {list_[at], trace_.spans[n], at, trace_.library_ns.empty() ? 0 : trace_.library_ns[n]};
  }
  size_t size() const { return trace_.spans.size(); }
  bool empty() const { return trace_.spans.empty(); }
  Iterator begin() const { return {this, 0}; }
  Iterator end() const { return {this, size()}; }

 private:
  const std::vector<Instruction>& list_;
  const DeviceTrace& trace_;
};

// InvalidArgument that names the device unless the trace may be one of the program: it has as many
// devices, and spans of all of a device's instructions or of none.
absl::Status CheckBelongs(const Program& program, const Trace& trace);

// The trace belongs to the program, or is one of its ranks (ExecutorOptions::tensor_parallel): of T
// that run each list, rank t of the program's device d is device d T + t of the trace.
DeviceSpans SpansOf(const Program& program, const Trace& trace, size_t device);
std::vector<ExecutedInstruction> HostCopiesOf(const Program& program, const Trace& trace,
                                              size_t device);

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
