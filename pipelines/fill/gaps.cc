#include "pipelines/fill/gaps.h"

#include <algorithm>
#include <limits>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "pipelines/sim/memory_levels.h"
#include "tools/base/status_macros.h"

namespace pipelab {
namespace {

bool IsPass(const Instruction& s) {
  return s.op == OpCode::kCompute && s.action.kind != ActionKind::kStep;
}

bool WaitsForCollective(OpCode op) {
  return op == OpCode::kReduceWait || op == OpCode::kGatherWait || op == OpCode::kNormWait;
}

bool IsIdle(OpCode op) {
  return op == OpCode::kWait || op == OpCode::kHostWait || op == OpCode::kFill ||
         WaitsForCollective(op);
}

absl::Status CheckTrace(const Program& program, const Trace& trace) {
  PIPELAB_RETURN_IF_ERROR(CheckBelongs(program, trace));
  for (size_t d = 0; d < trace.devices.size(); ++d) {
    int64_t last_end = std::numeric_limits<int64_t>::min();
    for (const Span& s : trace.devices[d].spans) {
      if (s.begin_ns < last_end || s.end_ns < s.begin_ns || !trace.devices[d].order.empty()) {
        return absl::InvalidArgumentError(
            absl::StrCat("trace: device ", d, ": the span from ", s.begin_ns, " to ", s.end_ns,
                         " ns is not in the order of time, or not in that of the program"));
      }
      last_end = s.end_ns;
    }
  }
  return absl::OkStatus();
}

// Whether other devices may wait for it, though it takes no time.
bool IsFelt(const Program& program, OpCode op) {
  return !IsIdle(op) && (op != OpCode::kReceive || program.calls != MessageCalls::kNone);
}

// The gaps of one device, without their memory.
class GapFinder {
 public:
  GapFinder(const Program& program, int device, int64_t begin, int64_t end)
      : program_(program), device_(device), begin_(begin), end_(end) {}

  DeviceGaps Find(const DeviceSpans& spans) {
    int64_t last_end = begin_;
    for (size_t n = 0; n < spans.size(); ++n) {
      const ExecutedInstruction s = spans[n];
      AddMoment(last_end, s.begin_ns, s.instruction);
      if (IsIdle(s.op)) {
        if (s.op == OpCode::kFill && (n == 0 || spans[n - 1].op != OpCode::kFill)) BeginFill(s);
        AddIdle(s, WaitsForCollective(NextWait(spans, n)));
      } else {
        found_.busy += Nanoseconds(s.end_ns - s.begin_ns);
      }
      if (IsFelt(program_, s.op)) {
        open_for_more_ = false;
        fill_ = -1;
      }
      if (IsPass(s)) EndOpenGaps(s.action.kind);
      last_end = s.end_ns;
    }
    AddMoment(last_end, end_, static_cast<int32_t>(program_.instructions[device_].size()));
    for (const Gap& gap : found_.gaps) found_.idle += gap.length();
    return found_;
  }

 private:
  // Its gap is its own, with the moment before it.
  void BeginFill(const ExecutedInstruction& s) {
    fill_ = s.instruction;
    open_for_more_ = open_for_more_ && only_moments_;
  }

  // What the fill, or the wait itself, is in front of.
  static OpCode NextWait(const DeviceSpans& spans, size_t n) {
    while (n + 1 < spans.size() && spans[n].op == OpCode::kFill) ++n;
    return spans[n].op;
  }

  Gap& NewGap(int64_t begin, int32_t instruction, bool collective) {
    Gap gap;
    gap.device = device_;
    gap.begin_ns = gap.end_ns = begin;
    gap.instruction = fill_ >= 0 ? fill_ : instruction;
    gap.kind = collective ? GapKind::kReduction : GapKind::kFillDrain;
    found_.gaps.push_back(gap);
    open_for_more_ = only_moments_ = true;
    return found_.gaps.back();
  }

  // Without an instruction; `next` is the one behind it.
  void AddMoment(int64_t begin, int64_t end, int32_t next) {
    if (end <= begin) return;
    Gap& gap = open_for_more_ ? found_.gaps.back() : NewGap(begin, next, false);
    gap.end_ns = end;
  }

  void AddIdle(const ExecutedInstruction& s, bool collective) {
    if (s.end_ns <= s.begin_ns) return;
    std::vector<Gap>& gaps = found_.gaps;
    const bool joins = open_for_more_ &&
                       (only_moments_ || (gaps.back().kind == GapKind::kReduction) == collective);
    Gap& gap = joins ? gaps.back() : NewGap(s.begin_ns, s.instruction, collective);
    gap.end_ns = s.end_ns;
    if (collective) gap.kind = GapKind::kReduction;
    if (s.op == OpCode::kFill) gap.filled += Nanoseconds(s.end_ns - s.begin_ns);
    only_moments_ = false;
  }

  // The pass that comes next says what the gaps since the last pass are.
  void EndOpenGaps(ActionKind next) {
    for (; open_ < found_.gaps.size(); ++open_) {
      GapKind& kind = found_.gaps[open_].kind;
      if (kind == GapKind::kReduction || !passed_) continue;
      const bool turns = last_ == ActionKind::kForward && next != ActionKind::kForward;
      kind = turns ? GapKind::kForwardBackward : GapKind::kBetweenPasses;
    }
    passed_ = true;
    last_ = next;
  }

  const Program& program_;
  const int device_;
  const int64_t begin_, end_;
  DeviceGaps found_;
  bool open_for_more_ = false;  // the last gap
  bool only_moments_ = false;   // in it so far
  int32_t fill_ = -1;           // in front of what comes
  size_t open_ = 0;             // the first gap after the last pass
  bool passed_ = false;
  ActionKind last_ = ActionKind::kForward;
};

// What is free all through each gap.
void SetFree(const std::vector<MemoryPoint>& levels, Bytes device_memory, DeviceGaps* found) {
  const auto free_beside = [&](Bytes held) { return std::max(device_memory - held, Bytes(0)); };
  size_t next = 0;  // the first level after the gap's begin
  for (Gap& gap : found->gaps) {
    if (levels.empty()) {
      gap.free = found->always_free;
      continue;
    }
    while (next < levels.size() && levels[next].time_ns <= gap.begin_ns) ++next;
    Bytes held = levels[next == 0 ? 0 : next - 1].parts.total();
    for (size_t i = next; i < levels.size() && levels[i].time_ns < gap.end_ns; ++i) {
      held = std::max(held, levels[i].parts.total());
    }
    gap.free = free_beside(held);
  }
}

}  // namespace

const char* GapKindName(GapKind kind) {
  switch (kind) {
    case GapKind::kFillDrain:
      return "fill-drain";
    case GapKind::kForwardBackward:
      return "forward-backward";
    case GapKind::kBetweenPasses:
      return "between passes";
    case GapKind::kReduction:
      return "reduction";
  }
  return "unknown";
}

absl::StatusOr<std::vector<DeviceGaps>> FindGaps(const Program& program, const CostTable& costs,
                                                 const Trace& trace, Bytes device_memory) {
  PIPELAB_RETURN_IF_ERROR(CheckTrace(program, trace));
  int64_t begin = std::numeric_limits<int64_t>::max(), end = 0;
  for (const DeviceTrace& d : trace.devices) {
    if (d.spans.empty()) continue;
    begin = std::min(begin, d.spans.front().begin_ns);
    end = std::max(end, d.spans.back().end_ns);
  }
  if (begin > end) begin = 0;
  if (end - begin > trace.makespan.value()) {
    return absl::InvalidArgumentError(absl::StrCat("trace: spans take ", end - begin,
                                                   " ns, more than the makespan of ",
                                                   trace.makespan.value(), " ns"));
  }
  const std::vector<std::vector<MemoryPoint>> levels = MemoryLevels(program, costs, trace);
  std::vector<DeviceGaps> found;
  for (size_t d = 0; d < trace.devices.size(); ++d) {
    const int device = static_cast<int>(d);
    found.push_back(GapFinder(program, device, begin, begin + trace.makespan.value())
                        .Find(SpansOf(program, trace, d)));
    const Bytes peak = PeakMemory(program, costs, device).parts.total();
    found.back().always_free = std::max(device_memory - peak, Bytes(0));
    SetFree(levels[d], device_memory, &found.back());
  }
  return found;
}

std::string GapName(const Gap& gap, int number) {
  return absl::StrCat("gap ", number, " of device ", gap.device, " (", GapKindName(gap.kind), ", ",
                      ToString(gap.length()), ", ", ToString(gap.free), " free)");
}

}  // namespace pipelab
