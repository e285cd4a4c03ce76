#include "experiments/report/timeline_drawing.h"

#include <algorithm>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "experiments/report/markup.h"
#include "experiments/report/table.h"
#include "tools/base/status_macros.h"

namespace pipelab {
namespace {

constexpr double kTimelineRight = 20, kTimelineAxis = 44;
constexpr double kFont = 10, kSmallFont = 8;
constexpr double kNarrowest = 800, kUnnumbered = 1600, kWidest = 4400, kBoxForTwoDigits = 16;

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

bool IsStep(const Instruction& s) {
  return s.op == OpCode::kStep || (s.op == OpCode::kCompute && s.action.kind == ActionKind::kStep);
}

}  // namespace

absl::Status CheckDrawn(int64_t actions, int64_t most) {
  if (actions <= most) return absl::OkStatus();
  return absl::ResourceExhaustedError(
      absl::StrCat(actions, " actions are too many to draw; the limit is ", most));
}

absl::StatusOr<TimelineDrawing> TimelineDrawing::Make(const Program& program, const Trace& trace,
                                                      double width, int64_t ns_per_unit,
                                                      int most_boxes) {
  PIPELAB_ASSIGN_OR_RETURN(TraceAnalysis analysis, Analyze(program, trace));
  PIPELAB_RETURN_IF_ERROR(CheckDrawn(analysis.overall.actions, most_boxes));
  PIPELAB_ASSIGN_OR_RETURN(std::vector<MessageTiming> messages, MatchMessages(program, trace));
  return TimelineDrawing(program, trace, std::move(analysis), std::move(messages), width,
                         ns_per_unit);
}

TimelineDrawing::TimelineDrawing(const Program& program, const Trace& trace, TraceAnalysis analysis,
                                 std::vector<MessageTiming> messages, double width,
                                 int64_t ns_per_unit)
    : program_(program),
      trace_(trace),
      analysis_(std::move(analysis)),
      num_messages_(messages.size()),
      ns_per_unit_(ns_per_unit) {
  if (messages.size() <= static_cast<size_t>(kMostMessageLines)) {
    drawn_messages_ = std::move(messages);
  }
  FindExtent();
  FindShades();
  pixels_per_ns_ = (width > 0 ? width : WidthForNumbers()) / static_cast<double>(end_ - begin_);
}

void TimelineDrawing::FindExtent() {
  bool any = false;
  for (const DeviceTrace& d : trace_.devices) {
    if (d.spans.empty()) continue;
    begin_ = any ? std::min(begin_, d.spans.front().begin_ns) : d.spans.front().begin_ns;
    end_ = any ? std::max(end_, d.spans.back().end_ns) : d.spans.back().end_ns;
    any = true;
  }
  end_ = std::max(end_, begin_ + 1);
  unit_ = TimeUnitFor(end_ - begin_, ns_per_unit_);
}

// A device's stages in model order, so that the darkest is the first.
void TimelineDrawing::FindShades() {
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

double TimelineDrawing::WidthForNumbers() const {
  std::vector<int64_t> durations;
  for (size_t d = 0; d < trace_.devices.size(); ++d) {
    for (const ExecutedInstruction& s : SpansOfDevice(d)) {
      if (s.op == OpCode::kCompute && s.end_ns > s.begin_ns)
        durations.push_back(s.end_ns - s.begin_ns);
    }
  }
  if (durations.empty()) return kNarrowest;
  const auto tenth = durations.begin() + static_cast<std::ptrdiff_t>(durations.size() / 10);
  std::nth_element(durations.begin(), tenth, durations.end());
  const double width =
      static_cast<double>(end_ - begin_) * kBoxForTwoDigits / static_cast<double>(*tenth);
  // What has no room for numbers anyway is better seen as a whole.
  return width > 2 * kWidest ? kUnnumbered : std::clamp(width, kNarrowest, kWidest);
}

Colour TimelineDrawing::ColourOf(size_t device, const Instruction& i) const {
  Colour base = kReduceColour;
  for (const Kind& k : kKinds) {
    if (k.kind == i.action.kind) base = k.colour;
  }
  const int shade = shade_[device].at({i.replica, i.action.stage});
  return most_shades_ == 1 ? base : Lighten(base, 0.6 * shade / (most_shades_ - 1));
}

TimelineDrawing::Look TimelineDrawing::LookOf(size_t device, const Instruction& s) const {
  Look look;
  if (s.op == OpCode::kWait || s.op == OpCode::kHostWait) {
    look.shape = Shape::kLine;
    look.css = "pl-w";
  } else if (IsCollective(s.op)) {
    look.shape = Shape::kBox;
    look.fill = Hex(kReduceColour);
    look.inset = 6;
  } else if (s.op == OpCode::kFill) {
    look.shape = Shape::kBox;
    look.fill = Hex(kYellow);
    look.inset = 6;
  } else if (IsStep(s)) {
    look.shape = Shape::kBox;
    look.css = "pl-o";
    look.inset = 3;
  } else if (s.op == OpCode::kCompute) {
    const Colour colour = ColourOf(device, s);
    look.shape = Shape::kBox;
    look.fill = Hex(colour);
    look.numbered = true;
    look.ink = InkOn(colour);
  }
  return look;
}

std::string TimelineDrawing::NumberOf(const Instruction& s) const {
  std::string number = absl::StrCat(s.action.micro_batch);
  if (program_.schedule.num_slices > 1) absl::StrAppend(&number, ".", s.action.slice);
  return number;
}

Svg TimelineDrawing::Begin(absl::string_view id, absl::string_view scheme) const {
  const std::string title =
      TimelineTitle(scheme, program_, trace_, analysis_.overall.bubble, ns_per_unit_);
  std::string description = "One row per device, time to the right.";
  for (size_t d = 0; d < analysis_.devices.size(); ++d) {
    absl::StrAppend(&description, " Device ", d, ": ", analysis_.devices[d].actions,
                    " actions, bubble ", FixedNumber(ToPercent(analysis_.devices[d].bubble), 1),
                    " %.");
  }
  const double drawing_width =
      std::max(X(end_) + kTimelineRight, kLeft + kNarrowest + kTimelineRight);
  Svg svg(id, drawing_width, Bottom() + kTimelineAxis + 56, title, description);
  svg.Text(kLeft, 24, title, "class=\"pl-t\" font-size=\"14\" font-weight=\"600\"");
  for (size_t d = 0; d < trace_.devices.size(); ++d) {
    svg.Text(kLeft - 8, Y(d) + kRow / 2 + 4, absl::StrCat("device ", d),
             "class=\"pl-t\" text-anchor=\"end\"");
    svg.Rect(kLeft, Y(d), width(), kRow, "class=\"pl-i\"");
  }
  svg.Text(kLeft, Bottom() + 36, absl::StrCat("time [", unit_.name, "]"), "class=\"pl-t\"");
  return svg;
}

void TimelineDrawing::DrawAxis(Svg& svg) const {
  const double span = static_cast<double>(end_ - begin_) / unit_.ns;
  const Ticks ticks = NiceTicks(0, span, std::max(4, static_cast<int>(width() / 90)));
  for (double v : ticks.values) {
    const double x = kLeft + v * unit_.ns * pixels_per_ns_;
    svg.Line(x, kTop - 4, x, Bottom() + 5, "class=\"pl-g\"");
    svg.Text(x, Bottom() + 18, FixedNumber(v, ticks.decimals),
             "class=\"pl-m\" text-anchor=\"middle\"");
  }
}

double TimelineDrawing::FontOf(const ExecutedInstruction& s) const {
  const double width = X(s.end_ns) - X(s.begin_ns);
  for (const double font : {kFont, kSmallFont}) {
    if (TextWidth(NumberOf(s), font) + 1 <= width) return font;
  }
  return 0;
}

void TimelineDrawing::DrawNumber(size_t device, const ExecutedInstruction& s, const Look& look,
                                 Svg& svg) const {
  const double x = X(s.begin_ns), width = X(s.end_ns) - x;
  const std::string number = NumberOf(s);
  const double font = FontOf(s);
  if (font == 0) return;
  svg.Text(x + width / 2, Y(device) + kRow / 2 + 3.5, number,
           absl::StrCat("fill=\"", look.ink, "\" font-size=\"", font,
                        "\" text-anchor=\"middle\" pointer-events=\"none\""));
}

void TimelineDrawing::DrawMessages(Svg& svg) const {
  if (drawn_messages_.empty()) return;
  svg.Open("stroke-width=\"0.9\" stroke-opacity=\"0.6\" pointer-events=\"none\"");
  for (const MessageTiming& m : drawn_messages_) {
    const bool down = m.to_device > m.from_device;
    const double x1 = X(trace_.devices[m.from_device].spans[m.send].begin_ns);
    const double x2 = X(trace_.devices[m.to_device].spans[m.wait].end_ns);
    const double y1 = Y(m.from_device) + (down ? kRow : 0), y2 = Y(m.to_device) + (down ? 0 : kRow);
    svg.Line(x1, y1, x2, y2,
             m.gradient ? "class=\"pl-s\" stroke-dasharray=\"3 2\"" : "class=\"pl-s\"");
  }
  svg.Close();
}

void TimelineDrawing::DrawLegend(Svg& svg) const {
  double x = kLeft;
  const double y = Bottom() + kTimelineAxis + 12;
  const auto label = [&](const std::string& text) {
    svg.Text(x + 22, y + 10, text, "class=\"pl-t\"");
    x += 36 + TextWidth(text, 12) * 0.95;
  };
  const auto box = [&](const std::string& attributes, const std::string& text) {
    svg.Rect(x, y, 16, 12, attributes);
    label(text);
  };
  bool waits = false, numbers = false, reduces = false, steps = false, fills = false;
  bool kinds[8] = {};
  for (size_t d = 0; d < trace_.devices.size(); ++d) {
    for (const ExecutedInstruction& s : SpansOfDevice(d)) {
      const bool waiting = s.op == OpCode::kWait || s.op == OpCode::kHostWait;
      waits |= waiting && X(s.end_ns) - X(s.begin_ns) >= 1;
      reduces |= IsCollective(s.op) && s.end_ns > s.begin_ns;
      fills |= s.op == OpCode::kFill && s.end_ns > s.begin_ns;
      steps |= IsStep(s) && s.end_ns > s.begin_ns;
      if (s.op == OpCode::kCompute) kinds[static_cast<int>(s.action.kind)] = true;
      numbers |= s.op == OpCode::kCompute && FontOf(s) > 0;
    }
  }
  for (const Kind& k : kKinds) {
    if (kinds[static_cast<int>(k.kind)]) box(absl::StrCat("fill=\"", Hex(k.colour), "\""), k.name);
  }
  if (reduces) box(absl::StrCat("fill=\"", Hex(kReduceColour), "\""), "reduction");
  if (steps) box("class=\"pl-o\"", "optimizer");
  if (fills) box(absl::StrCat("fill=\"", Hex(kYellow), "\""), "other jobs");
  box("class=\"pl-i\"", "idle");
  if (waits) {
    svg.Line(x, y + 6, x + 16, y + 6,
             "class=\"pl-w\" stroke-width=\"1.5\" stroke-dasharray=\"2 3\"");
    label("waiting");
  }
  if (!drawn_messages_.empty()) {
    svg.Line(x, y + 6, x + 16, y + 6, "class=\"pl-s\"");
    label("activation");
    svg.Line(x, y + 6, x + 16, y + 6, "class=\"pl-s\" stroke-dasharray=\"3 2\"");
    label("gradient");
  }
  std::string second = numbers ? "number: micro-batch" : "too narrow for numbers of micro-batches";
  if (most_shades_ > 1) absl::StrAppend(&second, "; shade: the device's stages, the first darkest");
  if (num_messages_ > drawn_messages_.size()) {
    absl::StrAppend(&second, "; ", num_messages_, " messages not drawn");
  }
  svg.Text(kLeft, y + 32, second, "class=\"pl-m\"");
}

}  // namespace pipelab
