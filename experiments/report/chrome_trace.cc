#include "experiments/report/chrome_trace.h"

#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "experiments/report/memory_table.h"
#include "experiments/report/table.h"
#include "nlohmann/json.hpp"
#include "pipelines/analysis/analysis.h"
#include "pipelines/sim/memory_levels.h"
#include "tools/base/status_macros.h"

namespace pipelab {
namespace {

constexpr int kComputeStream = 0, kCommunicationStream = 1, kHostStream = 2;

std::string Quoted(absl::string_view text) {
  return nlohmann::json(std::string(text))
      .dump(-1, ' ', true, nlohmann::json::error_handler_t::replace);
}

std::string Micros(int64_t ns) {
  const char* sign = ns < 0 ? "-" : "";
  const uint64_t n = ns < 0 ? -static_cast<uint64_t>(ns) : static_cast<uint64_t>(ns);
  return absl::StrCat(sign, n / 1000, ".", absl::Dec(n % 1000, absl::kZeroPad3));
}

// Events as they are written. Traces have millions, so they are one text from the start.
class Events {
 public:
  explicit Events(std::string head) : text_(std::move(head)) {}

  template <typename... Parts>
  void Add(const Parts&... parts) {
    absl::StrAppend(&text_, between_, parts...);
    between_ = ",\n";
  }
  std::string Take() { return std::move(text_); }

 private:
  std::string text_;
  const char* between_ = "";
};

bool IsHostCopy(OpCode op) { return op == OpCode::kOffload || op == OpCode::kReload; }

int StreamOf(OpCode op) {
  if (IsHostCopy(op)) return kHostStream;
  return op == OpCode::kCompute || op == OpCode::kStep || op == OpCode::kFill
             ? kComputeStream
             : kCommunicationStream;
}

std::string SpanName(const Program& program, const Instruction& s) {
  switch (s.op) {
    case OpCode::kCompute:
    case OpCode::kStep:
      return ToString(s.action);
    case OpCode::kSend:
      return absl::StrCat("send ", ToString(s.action), " to ", program.messages[s.arg].to_device);
    case OpCode::kReceive:
    case OpCode::kWait:
      return absl::StrCat(s.op == OpCode::kWait ? "wait for " : "post receive of ",
                          ToString(s.action), " from ", program.messages[s.arg].from_device);
    case OpCode::kSynchronise:
      return absl::StrCat("end of call ", s.arg);
    case OpCode::kReduce:
      return absl::StrCat("reduce ", s.arg);
    case OpCode::kReduceWait:
      return absl::StrCat("wait for reduce ", s.arg);
    case OpCode::kGather:
      return absl::StrCat("gather weights of stage ", s.action.stage);
    case OpCode::kGatherWait:
      return absl::StrCat("wait for weights of stage ", s.action.stage);
    case OpCode::kNorm:
      return "norm of gradients";
    case OpCode::kNormWait:
      return "wait for norm of gradients";
    case OpCode::kRelease:
      return absl::StrCat("release weights of stage ", s.action.stage);
    case OpCode::kOffload:
      return absl::StrCat("offload ", ToString(s.action));
    case OpCode::kReload:
      return absl::StrCat("reload ", ToString(s.action));
    case OpCode::kHostWait:
      return absl::StrCat("wait for ", ToString(s.action));
    case OpCode::kFill: {
      const Fill& fill = program.fills[s.arg];
      if (fill.job < 0) return "fill jobs";
      return absl::StrCat("fill job ", fill.job, ", pieces ", fill.first_piece, " to ",
                          fill.first_piece + fill.pieces - 1);
    }
  }
  return "unknown";
}

std::string Slice(const Program& program, int device, const ExecutedInstruction& s) {
  std::string args;
  if (s.op == OpCode::kCompute || s.op == OpCode::kStep) {
    args =
        absl::StrCat("\"stage\":", s.action.stage, ",\"micro_batch\":", s.action.micro_batch, ",");
  }
  return absl::StrCat("{\"ph\":\"X\",\"pid\":", device, ",\"tid\":", StreamOf(s.op),
                      ",\"ts\":", Micros(s.begin_ns), ",\"dur\":", Micros(s.end_ns - s.begin_ns),
                      ",\"name\":", Quoted(SpanName(program, s)), ",\"cat\":\"", OpCodeName(s.op),
                      "\",\"args\":{", args, "\"cpu_us\":", Micros(s.cpu_ns),
                      ",\"library_us\":", Micros(s.library_ns), "}}");
}

std::string Metadata(int device, int tid, absl::string_view what, absl::string_view name) {
  return absl::StrCat("{\"ph\":\"M\",\"pid\":", device, ",\"tid\":", tid, ",\"name\":\"", what,
                      "\",\"args\":{\"name\":", Quoted(name), "}}");
}

// Viewers tie the ends of a flow to the slices that are open at their times.
void AddFlow(const Trace& trace, const MessageTiming& m, Events& events) {
  if (m.producer < 0 || m.consumer < 0) return;
  const Span& from = trace.devices[m.from_device].spans[m.producer];
  const Span& to = trace.devices[m.to_device].spans[m.consumer];
  const auto end = [&](char ph, int device, int64_t ns, absl::string_view rest) {
    events.Add("{\"ph\":\"", std::string(1, ph), "\",\"pid\":", device, ",\"tid\":", kComputeStream,
               ",\"ts\":", Micros(ns), ",\"id\":", m.message, ",\"cat\":\"message\",\"name\":\"",
               m.gradient ? "gradient" : "activation", "\"", rest, "}");
  };
  end('s', m.from_device, from.end_ns > from.begin_ns ? from.end_ns - 1 : from.begin_ns, "");
  end('f', m.to_device, to.begin_ns, ",\"bp\":\"e\"");
}

void AddMemory(const Program& program, const CostTable& costs, const Trace& trace, Events& events) {
  const std::vector<std::vector<MemoryPoint>> levels = MemoryLevels(program, costs, trace);
  for (size_t d = 0; d < levels.size(); ++d) {
    for (const MemoryPoint& p : levels[d]) {
      std::string parts;
      for (const MemoryColumn& c : MemoryColumns()) {
        absl::StrAppend(&parts, parts.empty() ? "" : ",", Quoted(c.metric), ":",
                        c.of(p.parts).value());
      }
      events.Add("{\"ph\":\"C\",\"pid\":", d, ",\"tid\":0,\"ts\":", Micros(p.time_ns),
                 ",\"name\":\"memory [bytes]\",\"args\":{", parts, "}}");
    }
  }
}

}  // namespace

absl::StatusOr<std::string> ChromeTrace(absl::string_view scheme, const Program& program,
                                        const Trace& trace, const CostTable* costs) {
  // Refuses spans that overlap.
  PIPELAB_ASSIGN_OR_RETURN(const TraceAnalysis analysis, Analyze(program, trace));
  PIPELAB_ASSIGN_OR_RETURN(std::vector<MessageTiming> messages, MatchMessages(program, trace));
  Events events(
      absl::StrCat("{\"displayTimeUnit\":\"ms\",\n\"otherData\":{\"scheme\":", Quoted(scheme),
                   ",\"origin\":\"", OriginName(OriginOf(trace)), "\",\"step_us\":\"",
                   Micros(analysis.step_time.value()), "\"},\n\"traceEvents\":[\n"));
  for (int d = 0; d < static_cast<int>(trace.devices.size()); ++d) {
    events.Add(Metadata(d, kComputeStream, "process_name", absl::StrCat("device ", d)));
    events.Add(Metadata(d, kComputeStream, "thread_name", "compute"));
    events.Add(Metadata(d, kCommunicationStream, "thread_name", "communication"));
    const DeviceSpans spans = SpansOf(program, trace, d);
    for (const ExecutedInstruction& s : spans) {
      // A copy is where it runs, and not where it is asked for.
      if (!IsHostCopy(s.op)) events.Add(Slice(program, d, s));
    }
    if (const auto copies = HostCopiesOf(program, trace, d); !copies.empty()) {
      events.Add(Metadata(d, kHostStream, "thread_name", "host copies"));
      for (const ExecutedInstruction& s : copies) events.Add(Slice(program, d, s));
    }
    for (const InFlightPoint& p : InFlight(spans)) {
      events.Add("{\"ph\":\"C\",\"pid\":", d, ",\"tid\":0,\"ts\":", Micros(p.time_ns),
                 ",\"name\":\"in flight\",\"args\":{\"forwards\":", p.count, "}}");
    }
  }
  for (const MessageTiming& m : messages) AddFlow(trace, m, events);
  if (costs != nullptr) AddMemory(program, *costs, trace, events);
  std::string text = events.Take();
  text += "\n]}\n";
  return text;
}

}  // namespace pipelab
