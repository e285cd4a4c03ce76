#include "tests/program_text.h"

#include <charconv>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "pipelines/sim/memory_levels.h"

namespace pipelab {
namespace {

// Most of the time goes into numbers.
void AppendNumbers(std::initializer_list<int64_t> numbers, std::string* out) {
  char buffer[128];
  char* end = buffer;
  for (const int64_t number : numbers) {
    *end++ = ' ';
    end = std::to_chars(end, buffer + sizeof(buffer), number).ptr;
  }
  out->append(buffer, end);
}

void AppendAction(const Action& a, std::string* out) {
  out->push_back(' ');
  out->push_back(KindLetter(a.kind));
  AppendNumbers({a.stage, a.micro_batch, a.slice, a.version}, out);
}

std::string CopiesText(const std::vector<StageCopy>& members) {
  std::string text;
  for (const StageCopy& m : members) {
    absl::StrAppend(&text, " ", m.stage, "r", m.replica, "@", m.device);
  }
  return text;
}

std::string MessageText(const Message& m) {
  std::string text = m.gradient ? " gradient" : " value";
  if (m.is_hop()) {
    text += " hop";
    AppendNumbers({m.hop_of_stage, m.from_device, m.to_device}, &text);
    return text;
  }
  AppendNumbers({m.edge, m.micro_batch, m.slice, m.from_device, m.to_device}, &text);
  AppendNumbers({m.row_begin, m.row_end, m.row_parts}, &text);
  return text;
}

std::string SharesText(const char* name, const std::vector<ChunkShare>& shares) {
  std::string text;
  for (const ChunkShare& s : shares) {
    absl::StrAppend(&text, " ", name, " ", s.device, ":", s.first, "+", s.count);
  }
  return text;
}

// What instructions mean, numbered in the order in which lists have those that are alike.
class Meanings {
 public:
  explicit Meanings(const Program& p) : p_(p) {
    for (const Message& m : p.messages) messages_.push_back(MessageText(m));
    for (const Reduction& r : p.reductions) {
      reductions_.push_back(absl::StrCat(" sum of ", r.parameter.empty() ? "all" : r.parameter,
                                         r.scatter ? " scattered" : "", CopiesText(r.members)));
    }
    for (const Gather& g : p.gathers) {
      gathers_.push_back(absl::StrCat(" gathered", CopiesText(g.members)));
    }
    if (p.schedule.weights_travel) Number(OpCode::kSend, &messages_);  // all others differ
    Number(OpCode::kReduce, &reductions_);
    Number(OpCode::kGather, &gathers_);
    for (const PassExchange& e : p.exchanges) exchanges_.push_back(ExchangeText(e));
    for (const Fill& f : p.fills) {
      fills_.push_back(absl::StrCat(" for ", f.time.value(), " in ", f.bytes.value()));
    }
    if (!p.norm.has_value()) return;
    norm_ = absl::StrCat(" norm of ", p.norm->values, " in ", p.norm->rounds,
                         CopiesText(p.norm->members));
  }

  absl::string_view Of(const Instruction& i) const {
    switch (i.op) {
      case OpCode::kSend:
      case OpCode::kReceive:
      case OpCode::kWait:
        return messages_[i.arg];
      case OpCode::kReduce:
      case OpCode::kReduceWait:
        return reductions_[i.arg];
      case OpCode::kGather:
      case OpCode::kGatherWait:
        return gathers_[i.arg];
      case OpCode::kRelease:
        return p_.schedule.weights_travel ? messages_[i.arg] : gathers_[i.arg];
      case OpCode::kNorm:
      case OpCode::kNormWait:
        return norm_;
      case OpCode::kFill:
        return fills_[i.arg];
      case OpCode::kCompute:
        if (i.arg < 0) return "";
        return exchanges_[i.arg];
      case OpCode::kSynchronise:
      case OpCode::kStep:
      case OpCode::kOffload:
      case OpCode::kReload:
      case OpCode::kHostWait:
        return "";  // the action says all
    }
    return "";
  }

 private:
  static std::string ExchangeText(const PassExchange& e) {
    return absl::StrCat(" slot ", e.slot, SharesText("gives", e.given),
                        SharesText("receives", e.received));
  }

  // By the first device's list that has each: those that are alike have the same members.
  void Number(OpCode begin, std::vector<std::string>* texts) const {
    std::vector<char> seen(texts->size(), 0);
    std::map<std::string, int> alike;
    for (const std::vector<Instruction>& list : p_.instructions) {
      for (const Instruction& i : list) {
        if (i.op != begin || seen[i.arg] != 0) continue;
        seen[i.arg] = 1;
        std::string& text = (*texts)[i.arg];
        const int number = alike[text]++;
        absl::StrAppend(&text, " #", number);
      }
    }
  }

  const Program& p_;
  std::vector<std::string> messages_, reductions_, gathers_, exchanges_, fills_;
  std::string norm_;
};

void AppendSpan(const ExecutedInstruction& span, std::string* out) {
  out->push_back(' ');
  out->append(OpCodeName(span.op));
  AppendAction(span.action, out);
  AppendNumbers({span.begin_ns, span.end_ns, span.cpu_ns}, out);
  out->push_back('\n');
}

}  // namespace

std::string ListsText(const Program& program) {
  const Meanings meanings(program);
  std::string text;
  for (size_t d = 0; d < program.instructions.size(); ++d) {
    absl::StrAppend(&text, "device ", d, "\n");
    for (const Instruction& i : program.instructions[d]) {
      text.push_back(' ');
      text.append(OpCodeName(i.op));
      AppendAction(i.action, &text);
      AppendNumbers({i.replica}, &text);
      absl::StrAppend(&text, meanings.Of(i), "\n");
    }
  }
  return text;
}

std::string SpansText(const Program& program, const Trace& trace) {
  std::string text = absl::StrCat("makespan ", trace.makespan.value(), "\n");
  for (size_t d = 0; d < trace.devices.size(); ++d) {
    absl::StrAppend(&text, "device ", d, "\n");
    for (const ExecutedInstruction& span : SpansOf(program, trace, d)) AppendSpan(span, &text);
    if (!trace.devices[d].host_copies.empty()) absl::StrAppend(&text, "host link ", d, "\n");
    for (const ExecutedInstruction& copy : HostCopiesOf(program, trace, d)) {
      AppendSpan(copy, &text);
    }
  }
  return text;
}

std::string PeaksText(const Trace& trace) {
  std::string text;
  for (size_t d = 0; d < trace.devices.size(); ++d) {
    const DeviceTrace& device = trace.devices[d];
    absl::StrAppend(&text, "device ", d, " activation ", device.peak_activation.value(), " state ",
                    device.peak_state.value(), " host ", device.peak_host.value(), "\n");
  }
  return text;
}

std::string LevelsText(const Program& program, const CostTable& costs, const Trace& trace) {
  std::string text;
  const std::vector<std::vector<MemoryPoint>> levels = MemoryLevels(program, costs, trace);
  for (size_t d = 0; d < levels.size(); ++d) {
    absl::StrAppend(&text, "levels ", d, "\n");
    std::pair<Bytes, Bytes> last(-1, -1);
    for (const MemoryPoint& point : levels[d]) {
      const std::pair<Bytes, Bytes> now(point.parts.activation(), point.parts.state.total());
      if (now == last) continue;
      last = now;
      AppendNumbers({point.time_ns, now.first.value(), now.second.value()}, &text);
      text.push_back('\n');
    }
  }
  return text;
}

std::string TrafficText(const Trace& trace) {
  std::string text;
  for (size_t d = 0; d < trace.devices.size(); ++d) {
    const DeviceTrace& device = trace.devices[d];
    absl::StrAppend(&text, "device ", d, " sent ", device.bytes_sent.value(), " in ",
                    device.messages_sent, " collectives ", device.collective_bytes.value(),
                    " host ", device.host_bytes.value(), " group ", device.tensor_bytes.value(),
                    "\n");
  }
  return text;
}

}  // namespace pipelab
