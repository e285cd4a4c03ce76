#include "pipelines/analysis/analysis.h"

#include <algorithm>
#include <limits>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "tools/base/status_macros.h"

namespace pipelab {
namespace {

// The member of `b` that an instruction's time goes to.
Nanoseconds& Part(Breakdown& b, OpCode op, ActionKind kind) {
  switch (op) {
    case OpCode::kCompute:
      return kind == ActionKind::kStep ? b.optimizer : b.compute;
    case OpCode::kOffload:
    case OpCode::kReload:
    case OpCode::kSend:
    case OpCode::kReceive:
    case OpCode::kSynchronise:
      return b.communication;
    case OpCode::kWait:
    case OpCode::kHostWait:
    case OpCode::kFill:
      return b.waiting;
    case OpCode::kReduce:
    case OpCode::kReduceWait:
    case OpCode::kGather:
    case OpCode::kGatherWait:
    case OpCode::kNorm:
    case OpCode::kNormWait:
    case OpCode::kRelease:
      return b.reduction;
    case OpCode::kStep:
      return b.optimizer;
  }
  return b.dispatch;  // not reached: CheckSpans refuses other codes
}

bool IsCompute(const Instruction& s) {
  return s.op == OpCode::kCompute && s.action.kind != ActionKind::kStep;
}

absl::Status CheckSpans(size_t device, const DeviceSpans& spans) {
  int64_t last_end = std::numeric_limits<int64_t>::min();
  for (size_t i = 0; i < spans.size(); ++i) {
    const ExecutedInstruction s = spans[i];
    const char* wrong = nullptr;
    if (s.op > kLastOpCode) wrong = "has an unknown instruction code";
    if (s.end_ns < s.begin_ns) wrong = "ends before it begins";
    if (s.begin_ns < last_end) wrong = "begins before the one before it ends";
    if (s.cpu_ns < 0 || s.library_ns < 0) wrong = "has a negative processor time";
    if (wrong != nullptr) {
      return absl::InvalidArgumentError(absl::StrCat("trace: device ", device, ", span ", i, " (",
                                                     s.begin_ns, " to ", s.end_ns, " ns) ", wrong));
    }
    last_end = s.end_ns;
  }
  return absl::OkStatus();
}

// Counts as InFlight says, one span of a device after the other.
class InFlightCount {
 public:
  explicit InFlightCount(const DeviceSpans& spans) {
    const auto is_other_pass = [](const Instruction& i) {
      return IsCompute(i) && i.action.kind != ActionKind::kForward;
    };
    forward_only_ = ExtentOf(spans, is_other_pass).empty();
  }

  // Calls `point` with the time and the count of each change.
  template <typename Point>
  void Visit(const ExecutedInstruction& s, Point point) {
    if (s.op == OpCode::kReload) point(s.begin_ns, ++count_);
    if (s.op == OpCode::kHostWait && s.action.kind == ActionKind::kOffload) {
      point(s.end_ns, --count_);
    }
    if (s.op != OpCode::kCompute) return;
    // A forward holds its memory from its begin on; a backward until its end.
    switch (s.action.kind) {
      case ActionKind::kForward:
        point(s.begin_ns, ++count_);
        if (forward_only_) point(s.end_ns, --count_);
        break;
      case ActionKind::kBackward:
      case ActionKind::kBackwardWeight:
        point(s.end_ns, --count_);
        break;
      case ActionKind::kBackwardInput:
      case ActionKind::kRecompute:
      case ActionKind::kStep:
      case ActionKind::kOffload:
      case ActionKind::kReload:
        break;
    }
  }

 private:
  bool forward_only_ = false;
  int count_ = 0;
};

// All but the bubble.
DeviceAnalysis AnalyzeDevice(const DeviceTrace& device, const DeviceSpans& spans,
                             TraceOrigin origin, Nanoseconds step_time) {
  DeviceAnalysis a;
  a.peak_activation = device.peak_activation;
  a.peak_state = device.peak_state;
  a.bytes_sent = device.bytes_sent;
  a.messages_sent = device.messages_sent;
  a.collective_bytes = device.collective_bytes;
  a.wall.ends = step_time;
  if (device.spans.empty()) return a;  // idle all through, as far as the trace tells
  const bool measured = origin == TraceOrigin::kMeasured;
  Nanoseconds library;
  InFlightCount in_flight(spans);
  int64_t last_end = device.spans.front().begin_ns;
  for (const ExecutedInstruction& s : spans) {
    Part(a.wall, s.op, s.action.kind) += Nanoseconds(s.end_ns - s.begin_ns);
    if (measured) Part(a.cpu, s.op, s.action.kind) += Nanoseconds(s.cpu_ns);
    a.wall.dispatch += Nanoseconds(s.begin_ns - last_end);
    last_end = s.end_ns;
    in_flight.Visit(s, [&](int64_t /*time_ns*/, int count) {
      a.peak_in_flight = std::max(a.peak_in_flight, count);
    });
    if (IsCompute(s)) {
      ++a.actions;
      library += Nanoseconds(s.library_ns);
    }
  }
  if (!measured) {
    a.cpu = a.wall;
    a.cpu.dispatch = a.cpu.ends = Nanoseconds(0);
  }
  a.wall.ends -= Nanoseconds(last_end - device.spans.front().begin_ns);
  if (a.wall.compute.value() > 0) a.library_share = library / a.wall.compute;
  return a;
}

void Add(const DeviceAnalysis& d, DeviceAnalysis& sum) {
  sum.wall += d.wall;
  sum.cpu += d.cpu;
  sum.actions += d.actions;
  sum.peak_activation = std::max(sum.peak_activation, d.peak_activation);
  sum.peak_state = std::max(sum.peak_state, d.peak_state);
  sum.bytes_sent += d.bytes_sent;
  sum.messages_sent += d.messages_sent;
  sum.collective_bytes += d.collective_bytes;
  sum.peak_in_flight = std::max(sum.peak_in_flight, d.peak_in_flight);
  // Weighted by compute time; divided by its sum at the end.
  sum.library_share += d.library_share * static_cast<double>(d.wall.compute.value());
}

}  // namespace

Nanoseconds Breakdown::Total() const {
  return compute + waiting + communication + reduction + optimizer + dispatch + ends;
}

Breakdown& Breakdown::operator+=(const Breakdown& o) {
  compute += o.compute;
  waiting += o.waiting;
  communication += o.communication;
  reduction += o.reduction;
  optimizer += o.optimizer;
  dispatch += o.dispatch;
  ends += o.ends;
  return *this;
}

absl::StatusOr<TraceAnalysis> Analyze(const Program& program, const Trace& trace) {
  PIPELAB_RETURN_IF_ERROR(CheckBelongs(program, trace));
  TraceAnalysis a;
  a.origin = trace.origin;
  a.step_time = trace.makespan;
  TimeExtent all, compute_alone;
  for (size_t d = 0; d < trace.devices.size(); ++d) {
    const DeviceSpans spans = SpansOf(program, trace, d);
    PIPELAB_RETURN_IF_ERROR(CheckSpans(d, spans));
    a.has_spans |= !spans.empty();
    all += ExtentOf(spans, [](const Instruction&) { return true; });
    compute_alone += ExtentOf(spans, IsCompute);
    a.devices.push_back(AnalyzeDevice(trace.devices[d], spans, a.origin, a.step_time));
  }
  if (all.length() > trace.makespan.value()) {
    return absl::InvalidArgumentError(absl::StrCat("trace: spans take ", all.length(),
                                                   " ns, more than the makespan of ",
                                                   trace.makespan.value(), " ns"));
  }
  a.interval_begin_ns = compute_alone.empty() ? 0 : compute_alone.begin_ns;
  a.interval_end_ns = compute_alone.empty() ? 0 : compute_alone.end_ns;

  for (DeviceAnalysis& device : a.devices) {
    if (a.interval().value() > 0) device.bubble = 1 - device.wall.compute / a.interval();
    Add(device, a.overall);
  }
  const double compute = static_cast<double>(a.overall.wall.compute.value());
  if (compute > 0) a.overall.library_share /= compute;
  if (a.interval().value() > 0) {
    const double capacity =
        static_cast<double>(a.interval().value()) * static_cast<double>(trace.devices.size());
    a.overall.bubble = 1 - compute / capacity;
  }
  return a;
}

std::vector<InFlightPoint> InFlight(const DeviceSpans& spans) {
  std::vector<InFlightPoint> points;
  InFlightCount in_flight(spans);
  for (const ExecutedInstruction& s : spans) {
    in_flight.Visit(s, [&](int64_t time_ns, int count) { points.push_back({time_ns, count}); });
  }
  return points;
}

}  // namespace pipelab
