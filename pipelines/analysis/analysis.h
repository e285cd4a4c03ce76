// Every figure that is read off a trace, for simulated and measured ones alike.
//
//   PIPELAB_ASSIGN_OR_RETURN(TraceAnalysis a, Analyze(program, trace));
//   a.overall.bubble        // share of the interval in which devices did not compute, 0 to 1
//   a.devices[2].wall.waiting
//
// Definitions, used everywhere:
//  * interval: from the first begin to the last end of compute actions, over all devices.
//  * bubble: 1 - compute / interval; of all devices, 1 - sum of compute / (devices * interval).
//    What is not compute is bubble, communication calls included. Recomputation is compute.
//  * wall: what each device did during the step; its parts add up to step_time exactly.
//  * cpu: processor time of the same spans. On a machine with fewer cores than devices the wall
//    time of a span includes the time in which another device had the core; wall - cpu of compute
//    shows how much. Simulated and replayed traces have no other time: their cpu is their wall.
//
// Errors: InvalidArgument for a trace that cannot be one (spans overlap, end before they begin,
// ...), with the device and the span, or that is not the program's (CheckBelongs). A trace without
// spans has only step time, memory, traffic.
#ifndef PIPELAB_PIPELINES_ANALYSIS_ANALYSIS_H_
#define PIPELAB_PIPELINES_ANALYSIS_ANALYSIS_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

#include "absl/status/statusor.h"
#include "pipelines/ir/program.h"
#include "pipelines/ir/trace.h"
#include "tools/base/units.h"

namespace pipelab {

// Where time goes.
struct Breakdown {
  Nanoseconds compute;        // forward, backward and recompute actions
  Nanoseconds waiting;        // for messages (kWait), and what other jobs do meanwhile (kFill)
  Nanoseconds communication;  // calls that hand over messages and post receives
  // Gradient reductions and parameter gathers, waiting for the other members included; what runs
  // beside compute is not seen.
  Nanoseconds reduction;
  Nanoseconds optimizer;  // optimizer steps
  Nanoseconds dispatch;   // between one instruction and the next
  Nanoseconds ends;       // before the device's first instruction and after its last

  Nanoseconds Total() const;
  Breakdown& operator+=(const Breakdown& other);
};

struct DeviceAnalysis {
  Breakdown wall, cpu;       // cpu: dispatch and ends are not known and 0
  double bubble = 0;         // 0 to 1
  double library_share = 0;  // of compute wall time, inside vendor library calls; 0 to 1
  int64_t actions = 0;       // compute actions
  Bytes peak_activation, peak_state;
  Bytes bytes_sent;
  int64_t messages_sent = 0;
  Bytes collective_bytes;
  int peak_in_flight = 0;  // InFlight, at most, at one time
};

struct TraceAnalysis {
  TraceOrigin origin = TraceOrigin::kSimulated;
  bool has_spans = false;
  Nanoseconds step_time;                               // the trace's makespan
  int64_t interval_begin_ns = 0, interval_end_ns = 0;  // of the bubble
  std::vector<DeviceAnalysis> devices;
  DeviceAnalysis overall;  // sums over devices; peaks: the largest device's

  Nanoseconds interval() const { return Nanoseconds(interval_end_ns - interval_begin_ns); }
};

absl::StatusOr<TraceAnalysis> Analyze(const Program& program, const Trace& trace);

// From the first begin to the last end of some spans.
struct TimeExtent {
  int64_t begin_ns = std::numeric_limits<int64_t>::max();
  int64_t end_ns = std::numeric_limits<int64_t>::min();

  bool empty() const { return begin_ns > end_ns; }
  int64_t length() const { return empty() ? 0 : end_ns - begin_ns; }
  TimeExtent& operator+=(const TimeExtent& other) {
    begin_ns = std::min(begin_ns, other.begin_ns);
    end_ns = std::max(end_ns, other.end_ns);
    return *this;
  }
};

// From the first begin to the last end of the spans that `include` takes. They follow one another,
// so the first and the last of them say it.
template <typename Include>
TimeExtent ExtentOf(const DeviceSpans& spans, Include include) {
  size_t first = 0, last = spans.size();
  while (first < last && !include(spans[first])) ++first;
  if (first == last) return {};
  while (!include(spans[last - 1])) --last;
  return {spans[first].begin_ns, spans[last - 1].end_ns};
}

// A message as it was seen at both ends. Span indices are -1 where the trace has no such span.
struct MessageTiming {
  int message = 0;  // index in Program::messages
  int from_device = 0, to_device = 0;
  bool gradient = false;
  int producer = -1;  // span of from_device: the last compute before the send
  int send = -1;      // span of from_device
  int wait = -1;      // span of to_device
  int consumer = -1;  // span of to_device: the first compute after the wait
};

// Messages that were both sent and waited for, in the order of Program::messages. Fails as
// CheckBelongs does.
absl::StatusOr<std::vector<MessageTiming>> MatchMessages(const Program& program,
                                                         const Trace& trace);

// Number of forwards whose backward is not over and whose activations are not at the host, after
// each change, in time order. On a device without backwards (inference) a forward is in flight
// while it runs.
struct InFlightPoint {
  int64_t time_ns = 0;
  int count = 0;
};
std::vector<InFlightPoint> InFlight(const DeviceSpans& spans);

}  // namespace pipelab

#endif  // PIPELAB_PIPELINES_ANALYSIS_ANALYSIS_H_
