#include "experiments/report/timeline_svg.h"

#include <algorithm>
#include <map>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "experiments/report/markup.h"
#include "experiments/report/svg.h"
#include "experiments/report/table.h"
#include "pipelines/analysis/analysis.h"
#include "tools/base/status_macros.h"

namespace pipelab {
namespace {

constexpr double kLeft = 78, kRight = 20, kTop = 48, kRow = 26, kGap = 10, kAxis = 44;
constexpr double kFont = 10, kSmallFont = 8;
constexpr double kNarrowest = 800, kWidest = 4400, kBoxForTwoDigits = 16;

// What the legend lists, in this order.
struct Kind {
  ActionKind kind;
  const char* name;
  Colour colour;
};
constexpr Kind kKinds[] = {
    {ActionKind::kForward, "forward", kBlue},
    {ActionKind::kBackward, "backward", kOrange},
    {ActionKind::kBackwardInput, "backward, input part", kVermillion},
    {ActionKind::kBackwardWeight, "backward, weight part", kGreen},
    {ActionKind::kRecompute, "recompute", kPurple},
};
constexpr Colour kReduceColour{0x99, 0x99, 0x99};

bool IsStep(const Span& s) {
  return s.op == OpCode::kStep || (s.op == OpCode::kCompute && s.action.kind == ActionKind::kStep);
}

class Drawing {
 public:
  Drawing(const Program& program, const Trace& trace, const TraceAnalysis& analysis,
          std::vector<MessageTiming> messages)
      : program_(program), trace_(trace), analysis_(analysis), messages_(std::move(messages)) {
    FindExtent();
    FindShades();
    ChooseScale();
  }

  std::string Draw(absl::string_view id, absl::string_view scheme);

 private:
  void FindExtent();
  void FindShades();
  void ChooseScale();
  double X(int64_t ns) const { return kLeft + static_cast<double>(ns - begin_) * pixels_per_ns_; }
  double Y(size_t device) const { return kTop + static_cast<double>(device) * (kRow + kGap); }
  double Bottom() const { return Y(trace_.devices.size()) - kGap; }

  Colour ColourOf(size_t device, const Span& s) const;
  std::string HoverText(size_t device, const Span& s) const;
  void DrawAxis(Svg& svg) const;
  void DrawDevice(size_t device, Svg& svg) const;
  void DrawMessages(Svg& svg) const;
  void DrawLegend(Svg& svg) const;

  const Program& program_;
  const Trace& trace_;
  const TraceAnalysis& analysis_;
  const std::vector<MessageTiming> messages_;
  int64_t begin_ = 0, end_ = 1;
  std::vector<std::map<std::pair<int, int>, int>> shade_;  // [device][replica, stage] -> 0, 1, ...
  int most_shades_ = 1;
  double pixels_per_ns_ = 1;
  TimeUnit unit_{"ns", 1};
};

void Drawing::FindExtent() {
  bool any = false;
  for (const DeviceTrace& d : trace_.devices) {
    if (d.spans.empty()) continue;
    begin_ = any ? std::min(begin_, d.spans.front().begin_ns) : d.spans.front().begin_ns;
    end_ = any ? std::max(end_, d.spans.back().end_ns) : d.spans.back().end_ns;
    any = true;
  }
  end_ = std::max(end_, begin_ + 1);
  unit_ = TimeUnitFor(end_ - begin_);
}

// A device's stages in model order, so that the darkest is the first.
void Drawing::FindShades() {
  shade_.resize(trace_.devices.size());
  for (size_t d = 0; d < trace_.devices.size(); ++d) {
    for (const Instruction& i : program_.instructions[d]) {
      if (i.op == OpCode::kCompute) shade_[d][{i.replica, i.action.stage}] = 0;
    }
    int next = 0;
    for (auto& entry : shade_[d]) entry.second = next++;
    most_shades_ = std::max(most_shades_, next);
  }
}

// Wide enough for the micro-batch numbers of most boxes, within what a page can hold.
void Drawing::ChooseScale() {
  std::vector<int64_t> durations;
  for (const DeviceTrace& d : trace_.devices) {
    for (const Span& s : d.spans) {
      if (s.op == OpCode::kCompute && s.end_ns > s.begin_ns)
        durations.push_back(s.end_ns - s.begin_ns);
    }
  }
  const double extent = static_cast<double>(end_ - begin_);
  double width = kNarrowest;
  if (!durations.empty()) {
    const auto tenth = durations.begin() + static_cast<std::ptrdiff_t>(durations.size() / 10);
    std::nth_element(durations.begin(), tenth, durations.end());
    width =
        std::clamp(extent * kBoxForTwoDigits / static_cast<double>(*tenth), kNarrowest, kWidest);
  }
  pixels_per_ns_ = width / extent;
}

Colour Drawing::ColourOf(size_t device, const Span& s) const {
  const Instruction& i = program_.instructions[device][s.instruction];
  Colour base = kReduceColour;
  for (const Kind& k : kKinds) {
    if (k.kind == s.action.kind) base = k.colour;
  }
  const int shade = shade_[device].at({i.replica, i.action.stage});
  return most_shades_ == 1 ? base : Lighten(base, 0.6 * shade / (most_shades_ - 1));
}

std::string Drawing::HoverText(size_t device, const Span& s) const {
  const auto time = [&](int64_t ns) {
    return FixedNumber(static_cast<double>(ns - begin_) / unit_.ns, 3);
  };
  std::string what = ToString(s.action);
  if (s.op != OpCode::kCompute)
    what = absl::StrCat(OpCodeName(s.op), " ", IsCollective(s.op) ? "" : what);
  return absl::StrCat("device ", device, ", ", what, ": ", time(s.begin_ns), " to ", time(s.end_ns),
                      " ", unit_.name);
}

void Drawing::DrawAxis(Svg& svg) const {
  const double span = static_cast<double>(end_ - begin_) / unit_.ns;
  const double width = X(end_) - X(begin_);
  const Ticks ticks = NiceTicks(0, span, std::max(4, static_cast<int>(width / 90)));
  for (double v : ticks.values) {
    const double x = kLeft + v * unit_.ns * pixels_per_ns_;
    svg.Line(x, kTop - 4, x, Bottom() + 5, "class=\"pl-g\"");
    svg.Text(x, Bottom() + 18, FixedNumber(v, ticks.decimals),
             "class=\"pl-m\" text-anchor=\"middle\"");
  }
  svg.Text(kLeft, Bottom() + 36, absl::StrCat("time [", unit_.name, "]"), "class=\"pl-t\"");
}

void Drawing::DrawDevice(size_t device, Svg& svg) const {
  const double y = Y(device);
  svg.Text(kLeft - 8, y + kRow / 2 + 4, absl::StrCat("device ", device),
           "class=\"pl-t\" text-anchor=\"end\"");
  svg.Rect(kLeft, y, X(end_) - kLeft, kRow, "class=\"pl-i\"");
  for (const Span& s : trace_.devices[device].spans) {
    const double x = X(s.begin_ns), width = X(s.end_ns) - x;
    if (s.op == OpCode::kWait && width >= 1) {
      svg.Line(x, y + kRow / 2, x + width, y + kRow / 2,
               "class=\"pl-w\" stroke-width=\"1.5\" stroke-dasharray=\"2 3\"");
    } else if (IsCollective(s.op)) {
      svg.Rect(x, y + 6, width, kRow - 12, absl::StrCat("fill=\"", Hex(kReduceColour), "\""),
               HoverText(device, s));
    } else if (IsStep(s)) {
      svg.Rect(x, y + 3, width, kRow - 6, "class=\"pl-o\"", HoverText(device, s));
    } else if (s.op == OpCode::kCompute) {
      const Colour colour = ColourOf(device, s);
      svg.Rect(x, y, width, kRow,
               absl::StrCat("fill=\"", Hex(colour), "\" class=\"pl-b\" stroke-width=\"",
                            width >= 4 ? "0.7" : "0", "\""),
               HoverText(device, s));
      std::string number = absl::StrCat(s.action.micro_batch);
      if (program_.schedule.num_slices > 1) absl::StrAppend(&number, ".", s.action.slice);
      const double font = TextWidth(number, kFont) + 1 <= width ? kFont : kSmallFont;
      if (TextWidth(number, font) + 1 <= width) {
        svg.Text(x + width / 2, y + kRow / 2 + 3.5, number,
                 absl::StrCat("fill=\"", InkOn(colour), "\" font-size=\"", font,
                              "\" text-anchor=\"middle\" pointer-events=\"none\""));
      }
    }
  }
}

void Drawing::DrawMessages(Svg& svg) const {
  if (messages_.size() > static_cast<size_t>(kMostMessageLines)) return;
  svg.Open("stroke-width=\"0.9\" stroke-opacity=\"0.6\" pointer-events=\"none\"");
  for (const MessageTiming& m : messages_) {
    const bool down = m.to_device > m.from_device;
    const double x1 = X(trace_.devices[m.from_device].spans[m.send].begin_ns);
    const double x2 = X(trace_.devices[m.to_device].spans[m.wait].end_ns);
    const double y1 = Y(m.from_device) + (down ? kRow : 0), y2 = Y(m.to_device) + (down ? 0 : kRow);
    svg.Line(x1, y1, x2, y2,
             m.gradient ? "class=\"pl-s\" stroke-dasharray=\"3 2\"" : "class=\"pl-s\"");
  }
  svg.Close();
}

void Drawing::DrawLegend(Svg& svg) const {
  double x = kLeft;
  const double y = Bottom() + kAxis + 12;
  const auto label = [&](const std::string& text) {
    svg.Text(x + 22, y + 10, text, "class=\"pl-t\"");
    x += 36 + TextWidth(text, 12) * 0.95;
  };
  const auto box = [&](const std::string& attributes, const std::string& text) {
    svg.Rect(x, y, 16, 12, attributes);
    label(text);
  };
  bool waits = false, reduces = false, steps = false, kinds[8] = {};
  for (const DeviceTrace& d : trace_.devices) {
    for (const Span& s : d.spans) {
      waits |= s.op == OpCode::kWait && X(s.end_ns) - X(s.begin_ns) >= 1;
      reduces |= IsCollective(s.op) && s.end_ns > s.begin_ns;
      steps |= IsStep(s) && s.end_ns > s.begin_ns;
      if (s.op == OpCode::kCompute) kinds[static_cast<int>(s.action.kind)] = true;
    }
  }
  for (const Kind& k : kKinds) {
    if (kinds[static_cast<int>(k.kind)]) box(absl::StrCat("fill=\"", Hex(k.colour), "\""), k.name);
  }
  if (reduces) box(absl::StrCat("fill=\"", Hex(kReduceColour), "\""), "reduction");
  if (steps) box("class=\"pl-o\"", "optimizer");
  box("class=\"pl-i\"", "idle");
  if (waits) {
    svg.Line(x, y + 6, x + 16, y + 6,
             "class=\"pl-w\" stroke-width=\"1.5\" stroke-dasharray=\"2 3\"");
    label("waiting");
  }
  if (!messages_.empty() && messages_.size() <= static_cast<size_t>(kMostMessageLines)) {
    svg.Line(x, y + 6, x + 16, y + 6, "class=\"pl-s\"");
    label("activation");
    svg.Line(x, y + 6, x + 16, y + 6, "class=\"pl-s\" stroke-dasharray=\"3 2\"");
    label("gradient");
  }
  std::string second = "number: micro-batch";
  if (most_shades_ > 1) absl::StrAppend(&second, "; shade: the device's stages, the first darkest");
  if (messages_.size() > static_cast<size_t>(kMostMessageLines)) {
    absl::StrAppend(&second, "; ", messages_.size(), " messages not drawn");
  }
  svg.Text(kLeft, y + 32, second, "class=\"pl-m\"");
}

std::string Drawing::Draw(absl::string_view id, absl::string_view scheme) {
  const std::string title = TimelineTitle(scheme, program_, trace_, analysis_.overall.bubble);
  std::string description = "A row a device, time to the right.";
  for (size_t d = 0; d < analysis_.devices.size(); ++d) {
    absl::StrAppend(&description, " Device ", d, ": ", analysis_.devices[d].actions,
                    " actions, bubble ", FixedNumber(ToPercent(analysis_.devices[d].bubble), 1),
                    " %.");
  }
  const double width = std::max(X(end_) + kRight, kLeft + kNarrowest + kRight);
  Svg svg(id, width, Bottom() + kAxis + 56, title, description);
  svg.Text(kLeft, 24, title, "class=\"pl-t\" font-size=\"14\" font-weight=\"600\"");
  DrawAxis(svg);
  for (size_t d = 0; d < trace_.devices.size(); ++d) DrawDevice(d, svg);
  DrawMessages(svg);
  DrawLegend(svg);
  return std::move(svg).Finish();
}

}  // namespace

std::string TimelineTitle(absl::string_view scheme, const Program& program, const Trace& trace,
                          double bubble) {
  return absl::StrCat(
      scheme, ": ", trace.devices.size(), trace.devices.size() == 1 ? " device, " : " devices, ",
      program.schedule.num_micro_batches,
      program.schedule.num_micro_batches == 1 ? " micro-batch; " : " micro-batches; ",
      OriginName(OriginOf(trace)), " step ", ToString(trace.makespan), ", bubble ",
      FixedNumber(ToPercent(bubble), 1), " %");
}

absl::StatusOr<std::string> TimelineSvg(absl::string_view id, absl::string_view scheme,
                                        const Program& program, const Trace& trace) {
  PIPELAB_ASSIGN_OR_RETURN(TraceAnalysis analysis, Analyze(trace));
  PIPELAB_ASSIGN_OR_RETURN(std::vector<MessageTiming> messages, MatchMessages(program, trace));
  if (analysis.overall.actions > kMostBoxes) {
    return absl::ResourceExhaustedError(absl::StrCat(
        analysis.overall.actions, " actions are too many to draw; the limit is ", kMostBoxes));
  }
  return Drawing(program, trace, analysis, std::move(messages)).Draw(id, scheme);
}

}  // namespace pipelab
