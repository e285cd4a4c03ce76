// Writes the spans of one pass over a device's instructions.
//
//   SpanRecorder recorder(instructions);
//   recorder.Start();
//   for (each instruction i) { recorder.Before(i); ...run it...; recorder.After(i, library_ns); }
//   recorder.Take(&trace);
//
// Wall time is read once between two instructions. Processor time is a system call, so it is read
// around what takes time: computes, steps and collectives. Sends and receives never block and count
// with their wall time; a wait gets the rest of the processor time between two computes.
#ifndef PIPELAB_PIPELINES_RUNTIME_SPAN_RECORDER_H_
#define PIPELAB_PIPELINES_RUNTIME_SPAN_RECORDER_H_

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "pipelines/ir/program.h"
#include "pipelines/ir/trace.h"
#include "tools/base/clocks.h"

namespace pipelab {

class SpanRecorder {
 public:
  explicit SpanRecorder(const std::vector<Instruction>& instructions)
      : instructions_(instructions) {}

  void Start() {
    trace_ = DeviceTrace();
    trace_.spans.reserve(instructions_.size());
    trace_.order.reserve(instructions_.size());
    trace_.library_ns.reserve(instructions_.size());
    messages_begin_ = 0;
    cpu_ = ThreadCpuNs();
    wall_ = WallNs();
  }

  void Before(size_t n) {
    if (!Computes(instructions_[n].op) || messages_begin_ == trace_.spans.size()) return;
    CloseMessages();
    // The reading of the clock belongs to nobody: the compute begins after it.
    wall_ = WallNs();
  }

  void After(size_t n, int64_t library_ns) {
    Span span;
    span.begin_ns = wall_;
    span.end_ns = wall_ = WallNs();
    if (Computes(instructions_[n].op)) {
      const int64_t cpu = ThreadCpuNs();
      span.cpu_ns = cpu - cpu_;
      cpu_ = cpu;
      messages_begin_ = trace_.spans.size() + 1;
    }
    trace_.spans.push_back(span);
    trace_.order.push_back(static_cast<int32_t>(n));
    trace_.library_ns.push_back(library_ns);
  }

  // Spans, and what is beside them in a trace.
  void Take(DeviceTrace* trace) {
    CloseMessages();
    trace->spans = std::move(trace_.spans);
    trace->library_ns = std::move(trace_.library_ns);
    if (!std::is_sorted(trace_.order.begin(), trace_.order.end())) {
      trace->order = std::move(trace_.order);
    }
  }

 private:
  static bool Computes(OpCode op) {
    return op != OpCode::kSend && op != OpCode::kReceive && op != OpCode::kWait &&
           op != OpCode::kSynchronise;
  }

  // Divides the processor time since the last compute among the messages since then.
  void CloseMessages() {
    const int64_t cpu = ThreadCpuNs();
    int64_t rest = cpu - cpu_;
    cpu_ = cpu;
    Span* wait = nullptr;
    for (size_t n = messages_begin_; n < trace_.spans.size(); ++n) {
      Span& span = trace_.spans[n];
      if (instructions_[trace_.order[n]].op == OpCode::kWait) {
        wait = &span;
        continue;
      }
      span.cpu_ns = std::min(rest, span.end_ns - span.begin_ns);
      rest -= span.cpu_ns;
    }
    if (wait != nullptr) wait->cpu_ns = std::min(rest, wait->end_ns - wait->begin_ns);
    messages_begin_ = trace_.spans.size();
  }

  const std::vector<Instruction>& instructions_;
  DeviceTrace trace_;           // its spans, their instructions and library times
  size_t messages_begin_ = 0;   // first span without a processor time
  int64_t wall_ = 0, cpu_ = 0;  // last readings
};

}  // namespace pipelab

#endif  // PIPELAB_PIPELINES_RUNTIME_SPAN_RECORDER_H_
