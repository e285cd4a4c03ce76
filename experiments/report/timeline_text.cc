#include "experiments/report/timeline_text.h"

#include <algorithm>
#include <limits>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "tools/base/units.h"

namespace pipelab {
namespace {

// How actions are written: a letter a micro-batch; or, where a character is longer than any action,
// forward or backward, and of which of the device's stages.
struct Writing {
  bool by_stage = false;
  int most_stages = 1;                              // of a device
  std::vector<std::map<int, int>> stage_of_device;  // [device]: number among its stages, from 0
};

char Letter(const Instruction& s, size_t device, const Writing& writing) {
  if (IsCollective(s.op)) return '#';
  if (s.op == OpCode::kStep) return '=';
  if (s.op == OpCode::kFill) return '*';
  if (s.op != OpCode::kCompute) return '.';
  int letter = s.action.micro_batch % 26;
  char forward = 'a', backward = 'A';
  if (writing.by_stage && writing.most_stages > 1) {
    forward = '1';
    letter = std::min(writing.stage_of_device[device].at(s.action.stage), 8);
  } else if (writing.by_stage) {
    forward = 'F', backward = 'B', letter = 0;
  }
  switch (s.action.kind) {
    case ActionKind::kForward:
      return static_cast<char>(forward + letter);
    case ActionKind::kBackward:
    case ActionKind::kBackwardInput:
      return static_cast<char>(backward + letter);
    case ActionKind::kBackwardWeight:
      return '+';
    case ActionKind::kRecompute:
      return '~';
    case ActionKind::kStep:
      return '=';
    case ActionKind::kOffload:
    case ActionKind::kReload:
      break;
  }
  return '?';
}

Writing WritingOf(const Program& program, const Trace& trace, bool by_stage) {
  Writing writing;
  writing.by_stage = by_stage;
  for (size_t d = 0; d < trace.devices.size(); ++d) {
    std::map<int, int> stages;
    for (const ExecutedInstruction& s : SpansOf(program, trace, d)) {
      if (s.op == OpCode::kCompute) stages[s.action.stage] = 0;
    }
    int number = 0;
    for (auto& [stage, n] : stages) n = number++;
    writing.most_stages = std::max(writing.most_stages, number);
    writing.stage_of_device.push_back(std::move(stages));
  }
  return writing;
}

// A device's characters: each shows what happens in its middle.
std::string Line(const DeviceSpans& spans, size_t device, const Writing& writing, int64_t begin,
                 int64_t unit, int64_t count) {
  std::string line(static_cast<size_t>(count), '.');
  for (const ExecutedInstruction& s : spans) {
    const char letter = Letter(s, device, writing);
    for (int64_t i = std::max<int64_t>(0, (s.begin_ns - begin - unit / 2 + unit - 1) / unit);
         letter != '.' && i < count && begin + i * unit + unit / 2 < s.end_ns; ++i) {
      line[static_cast<size_t>(i)] = letter;
    }
  }
  return line;
}

// Forwards blue, backwards green, weight parts cyan, recomputation yellow, the rest magenta.
const char* ColourOf(char letter, const Writing& writing) {
  const bool forward =
      writing.by_stage ? letter == 'F' || absl::ascii_isdigit(letter) : absl::ascii_islower(letter);
  if (forward) return "\033[34m";
  if (absl::ascii_isupper(letter)) return "\033[32m";
  if (letter == '.') return "\033[2m";
  return letter == '+' ? "\033[36m" : letter == '~' ? "\033[33m" : "\033[35m";
}

std::string Coloured(const std::string& line, const Writing& writing) {
  std::string text;
  const char* last = "";
  for (const char c : line) {
    const char* colour = ColourOf(c, writing);
    if (absl::string_view(colour) != last) absl::StrAppend(&text, "\033[0m", colour);
    last = colour;
    text.push_back(c);
  }
  return absl::StrCat(text, "\033[0m");
}

std::string ActionsLegend(const Writing& writing, int micro_batches) {
  if (!writing.by_stage) {
    return absl::StrCat("a b c: forward of micro-batch 0 1 2; A B C: backward",
                        micro_batches > 26 ? "; after z the letters begin again" : "");
  }
  if (writing.most_stages == 1) return "F: forward; B: backward";
  return "1 2 3: forward of a device's first, second, third stage; A B C: backward";
}

std::string Legend(const std::set<char>& seen, std::string text, bool by_stage, Nanoseconds unit) {
  const std::pair<char, const char*> others[] = {{'+', "weight part of a backward"},
                                                 {'~', "recompute"},
                                                 {'#', "reduction"},
                                                 {'=', "optimizer"},
                                                 {'*', "other jobs"},
                                                 {'.', "idle"}};
  for (const auto& [letter, name] : others) {
    if (seen.count(letter) > 0) absl::StrAppend(&text, "; ", std::string(1, letter), ": ", name);
  }
  return absl::StrCat(text, "; a character is ", ToString(unit),
                      by_stage ? " and shows its middle" : "", "\n");
}

}  // namespace

std::string TimelineText(const Program& program, const Trace& trace, int columns, bool colours) {
  int64_t begin = std::numeric_limits<int64_t>::max(), end = std::numeric_limits<int64_t>::min();
  int64_t shortest = std::numeric_limits<int64_t>::max(), longest = 0;
  int micro_batches = 0;
  for (size_t d = 0; d < trace.devices.size(); ++d) {
    for (const ExecutedInstruction& s : SpansOf(program, trace, d)) {
      begin = std::min(begin, s.begin_ns);
      end = std::max(end, s.end_ns);
      if (s.op != OpCode::kCompute || s.end_ns <= s.begin_ns) continue;
      shortest = std::min(shortest, s.end_ns - s.begin_ns);
      longest = std::max(longest, s.end_ns - s.begin_ns);
      micro_batches = std::max(micro_batches, s.action.micro_batch + 1);
    }
  }
  if (begin >= end) return "no spans to show\n";
  columns = std::max(columns, 1);
  const int64_t unit =
      std::max<int64_t>(std::min(shortest, end - begin), (end - begin + columns - 1) / columns);
  const int64_t count = (end - begin + unit - 1) / unit;
  const Writing writing = WritingOf(program, trace, /*by_stage=*/unit > longest && longest > 0);

  std::string text;
  std::set<char> seen;
  const size_t digits = absl::StrCat(trace.devices.size() - 1).size();
  for (size_t d = 0; d < trace.devices.size(); ++d) {
    const std::string line = Line(SpansOf(program, trace, d), d, writing, begin, unit, count);
    seen.insert(line.begin(), line.end());
    const std::string number = absl::StrCat(d);
    absl::StrAppend(&text, "device ", std::string(digits - number.size(), ' '), number, " |",
                    colours ? Coloured(line, writing) : line, "|\n");
  }
  return absl::StrCat(text, Legend(seen, ActionsLegend(writing, micro_batches), writing.by_stage,
                                   Nanoseconds(unit)));
}

}  // namespace pipelab
