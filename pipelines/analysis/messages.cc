// MatchMessages: both ends of each message of a trace.
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "pipelines/analysis/analysis.h"
#include "tools/base/status_macros.h"

namespace pipelab {
namespace {

absl::Status CheckMessage(const Program& program, size_t device, const Instruction& s) {
  const bool sends = s.op == OpCode::kSend;
  if (s.arg >= 0 && static_cast<size_t>(s.arg) < program.messages.size()) {
    const Message& m = program.messages[s.arg];
    if (static_cast<size_t>(sends ? m.from_device : m.to_device) == device) return absl::OkStatus();
  }
  return absl::InvalidArgumentError(absl::StrCat("program: device ", device,
                                                 sends ? " sends" : " receives", " message ", s.arg,
                                                 ", which is not its own"));
}

}  // namespace

absl::StatusOr<std::vector<MessageTiming>> MatchMessages(const Program& program,
                                                         const Trace& trace) {
  PIPELAB_RETURN_IF_ERROR(CheckBelongs(program, trace));
  std::vector<MessageTiming> timings(program.messages.size());
  for (size_t d = 0; d < trace.devices.size(); ++d) {
    const DeviceSpans spans = SpansOf(program, trace, d);
    int last_compute = -1;
    std::vector<int> waiting;  // messages waited for since the last compute
    for (int i = 0; i < static_cast<int>(spans.size()); ++i) {
      const ExecutedInstruction s = spans[i];
      if (s.op == OpCode::kSend) {
        PIPELAB_RETURN_IF_ERROR(CheckMessage(program, d, s));
        timings[s.arg].send = i;
        timings[s.arg].producer = last_compute;
      } else if (s.op == OpCode::kReceive) {
        PIPELAB_RETURN_IF_ERROR(CheckMessage(program, d, s));
      } else if (s.op == OpCode::kWait) {
        PIPELAB_RETURN_IF_ERROR(CheckMessage(program, d, s));
        timings[s.arg].wait = i;
        waiting.push_back(s.arg);
      } else if (s.op == OpCode::kCompute) {
        last_compute = i;
        for (int m : waiting) timings[m].consumer = i;
        waiting.clear();
      }
    }
  }
  std::vector<MessageTiming> matched;
  for (size_t m = 0; m < timings.size(); ++m) {
    MessageTiming& t = timings[m];
    if (t.send < 0 || t.wait < 0) continue;
    t.message = static_cast<int>(m);
    t.from_device = program.messages[m].from_device;
    t.to_device = program.messages[m].to_device;
    t.gradient = program.messages[m].gradient;
    matched.push_back(t);
  }
  return matched;
}

}  // namespace pipelab
