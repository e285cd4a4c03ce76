#include "experiments/report/timeline_text.h"

#include <algorithm>
#include <limits>
#include <set>

#include "absl/strings/str_cat.h"
#include "tools/base/units.h"

namespace pipelab {
namespace {

char Letter(const Span& s) {
  if (IsCollective(s.op)) return '#';
  if (s.op == OpCode::kStep) return '=';
  if (s.op != OpCode::kCompute) return '.';
  const int letter = s.action.micro_batch % 26;
  switch (s.action.kind) {
    case ActionKind::kForward:
      return static_cast<char>('a' + letter);
    case ActionKind::kBackward:
    case ActionKind::kBackwardInput:
      return static_cast<char>('A' + letter);
    case ActionKind::kBackwardWeight:
      return '+';
    case ActionKind::kRecompute:
      return '~';
    case ActionKind::kStep:
      return '=';
  }
  return '?';
}

std::string Legend(const std::set<char>& seen, Nanoseconds unit) {
  std::string text = "a b c: forward of micro-batch 0 1 2; A B C: backward";
  const std::pair<char, const char*> others[] = {{'+', "weight part of a backward"},
                                                 {'~', "recompute"},
                                                 {'#', "reduction"},
                                                 {'=', "optimizer"},
                                                 {'.', "idle"}};
  for (const auto& [letter, name] : others) {
    if (seen.count(letter) > 0) absl::StrAppend(&text, "; ", std::string(1, letter), ": ", name);
  }
  return absl::StrCat(text, "; a character is ", ToString(unit), "\n");
}

}  // namespace

std::string TimelineText(const Trace& trace, int columns) {
  int64_t begin = std::numeric_limits<int64_t>::max(), end = std::numeric_limits<int64_t>::min();
  int64_t shortest = std::numeric_limits<int64_t>::max();
  for (const DeviceTrace& d : trace.devices) {
    for (const Span& s : d.spans) {
      begin = std::min(begin, s.begin_ns);
      end = std::max(end, s.end_ns);
      if (s.op == OpCode::kCompute && s.end_ns > s.begin_ns)
        shortest = std::min(shortest, s.end_ns - s.begin_ns);
    }
  }
  if (begin >= end) return "no spans to show\n";
  columns = std::max(columns, 1);
  const int64_t unit =
      std::max<int64_t>(std::min(shortest, end - begin), (end - begin + columns - 1) / columns);
  const int64_t count = (end - begin + unit - 1) / unit;

  std::string text;
  std::set<char> seen;
  const size_t digits = absl::StrCat(trace.devices.size() - 1).size();
  for (size_t d = 0; d < trace.devices.size(); ++d) {
    std::string line(static_cast<size_t>(count), '.');
    for (const Span& s : trace.devices[d].spans) {
      const char letter = Letter(s);
      // A character shows what happens in its middle.
      for (int64_t i = std::max<int64_t>(0, (s.begin_ns - begin - unit / 2 + unit - 1) / unit);
           letter != '.' && i < count && begin + i * unit + unit / 2 < s.end_ns; ++i) {
        line[static_cast<size_t>(i)] = letter;
      }
    }
    seen.insert(line.begin(), line.end());
    const std::string number = absl::StrCat(d);
    absl::StrAppend(&text, "device ", std::string(digits - number.size(), ' '), number, " |", line,
                    "|\n");
  }
  return absl::StrCat(text, Legend(seen, Nanoseconds(unit)));
}

}  // namespace pipelab
