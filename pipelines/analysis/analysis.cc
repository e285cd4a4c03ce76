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

bool IsCompute(const Span& s) {
  return s.op == OpCode::kCompute && s.action.kind != ActionKind::kStep;
}

absl::Status CheckSpans(const Trace& trace) {
  for (size_t d = 0; d < trace.devices.size(); ++d) {
    int64_t last_end = std::numeric_limits<int64_t>::min();
    const std::vector<Span>& spans = trace.devices[d].spans;
    for (size_t i = 0; i < spans.size(); ++i) {
      const Span& s = spans[i];
      const char* wrong = nullptr;
      if (s.op > kLastOpCode) wrong = "has an unknown instruction code";
      if (s.end_ns < s.begin_ns) wrong = "ends before it begins";
      if (s.begin_ns < last_end) wrong = "begins before the one before it ends";
      if (s.cpu_ns < 0 || s.library_ns < 0) wrong = "has a negative processor time";
      if (wrong != nullptr) {
        return absl::InvalidArgumentError(absl::StrCat(
            "trace: device ", d, ", span ", i, " (", s.begin_ns, " to ", s.end_ns, " ns) ", wrong));
      }
      last_end = s.end_ns;
    }
  }
  return absl::OkStatus();
}

// First begin and last end over all devices of the spans that `include` takes; both 0 when there
// are none.
template <typename Include>
void Extent(const Trace& trace, Include include, int64_t& begin, int64_t& end) {
  begin = std::numeric_limits<int64_t>::max();
  end = std::numeric_limits<int64_t>::min();
  for (const DeviceTrace& device : trace.devices) {
    for (const Span& s : device.spans) {
      if (!include(s)) continue;
      begin = std::min(begin, s.begin_ns);
      end = std::max(end, s.end_ns);
    }
  }
  if (begin > end) begin = end = 0;
}

DeviceAnalysis AnalyzeDevice(const DeviceTrace& device, TraceOrigin origin, Nanoseconds step_time,
                             Nanoseconds interval) {
  DeviceAnalysis a;
  a.peak_activation = device.peak_activation;
  a.peak_state = device.peak_state;
  a.bytes_sent = device.bytes_sent;
  a.messages_sent = device.messages_sent;
  a.collective_bytes = device.collective_bytes;
  if (device.spans.empty()) {
    // Idle all through, as far as the trace tells.
    a.wall.ends = step_time;
    a.bubble = interval.value() > 0 ? 1 : 0;
    return a;
  }
  Nanoseconds library;
  int64_t last_end = device.spans.front().begin_ns;
  for (const Span& s : device.spans) {
    Part(a.wall, s.op, s.action.kind) += Nanoseconds(s.end_ns - s.begin_ns);
    const bool measured = origin == TraceOrigin::kMeasured;
    Part(a.cpu, s.op, s.action.kind) += Nanoseconds(measured ? s.cpu_ns : s.end_ns - s.begin_ns);
    a.wall.dispatch += Nanoseconds(s.begin_ns - last_end);
    last_end = s.end_ns;
    if (IsCompute(s)) {
      ++a.actions;
      library += Nanoseconds(s.library_ns);
    }
  }
  a.wall.ends = step_time - Nanoseconds(last_end - device.spans.front().begin_ns);
  if (interval.value() > 0) a.bubble = 1 - a.wall.compute / interval;
  if (a.wall.compute.value() > 0) a.library_share = library / a.wall.compute;
  for (const InFlightPoint& p : InFlight(device))
    a.peak_in_flight = std::max(a.peak_in_flight, p.count);
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

absl::StatusOr<TraceAnalysis> Analyze(const Trace& trace) {
  PIPELAB_RETURN_IF_ERROR(CheckSpans(trace));
  TraceAnalysis a;
  a.origin = trace.origin;
  a.step_time = trace.makespan;
  for (const DeviceTrace& d : trace.devices) a.has_spans |= !d.spans.empty();

  int64_t first = 0, last = 0;
  Extent(
      trace, [](const Span&) { return true; }, first, last);
  if (last - first > trace.makespan.value()) {
    return absl::InvalidArgumentError(absl::StrCat("trace: spans take ", last - first,
                                                   " ns, more than the makespan of ",
                                                   trace.makespan.value(), " ns"));
  }
  Extent(trace, IsCompute, a.interval_begin_ns, a.interval_end_ns);

  for (const DeviceTrace& d : trace.devices) {
    a.devices.push_back(AnalyzeDevice(d, a.origin, a.step_time, a.interval()));
    Add(a.devices.back(), a.overall);
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

std::vector<InFlightPoint> InFlight(const DeviceTrace& device) {
  std::vector<InFlightPoint> points;
  const bool forward_only = std::none_of(
      device.spans.begin(), device.spans.end(),
      [](const Span& s) { return IsCompute(s) && s.action.kind != ActionKind::kForward; });
  int count = 0;
  for (const Span& s : device.spans) {
    if (s.op == OpCode::kReload) points.push_back({s.begin_ns, ++count});
    if (s.op == OpCode::kHostWait && s.action.kind == ActionKind::kOffload) {
      points.push_back({s.end_ns, --count});
    }
    if (s.op != OpCode::kCompute) continue;
    // A forward holds its memory from its begin on; a backward until its end.
    switch (s.action.kind) {
      case ActionKind::kForward:
        points.push_back({s.begin_ns, ++count});
        if (forward_only) points.push_back({s.end_ns, --count});
        break;
      case ActionKind::kBackward:
      case ActionKind::kBackwardWeight:
        points.push_back({s.end_ns, --count});
        break;
      case ActionKind::kBackwardInput:
      case ActionKind::kRecompute:
      case ActionKind::kStep:
      case ActionKind::kOffload:
      case ActionKind::kReload:
        break;
    }
  }
  return points;
}

}  // namespace pipelab
