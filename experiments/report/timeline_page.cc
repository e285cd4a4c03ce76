#include "experiments/report/timeline_page.h"

#include <cmath>
#include <map>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "experiments/report/markup.h"
#include "experiments/report/svg.h"
#include "experiments/report/timeline_drawing.h"
#include "nlohmann/json.hpp"
#include "tools/base/status_macros.h"

namespace pipelab {
namespace {

using Look = TimelineDrawing::Look;
using Shape = TimelineDrawing::Shape;

constexpr double kPlotWidth = 1000;
// Narrower boxes have no border: it would be all that is seen.
constexpr double kLeastBordered = 4;

std::string ClassOf(const Look& look, double width) {
  if (look.shape == Shape::kLine) return "pl-w pl-d";
  if (look.numbered) return width >= kLeastBordered ? "pl-b" : "";
  return look.css;
}

// Boxes of one colour and border are one path.
void DrawDevicePaths(const TimelineDrawing& drawing, size_t device, Svg& svg) {
  std::map<std::pair<std::string, std::string>, std::string> paths;  // fill, class
  const double row = TimelineDrawing::kRow;
  for (const ExecutedInstruction& s : drawing.SpansOfDevice(device)) {
    const Look look = drawing.LookOf(device, s);
    const double x = drawing.X(s.begin_ns), width = drawing.X(s.end_ns) - x;
    if (look.shape == Shape::kNothing || (look.shape == Shape::kLine && width < 1)) continue;
    std::string& path = paths[{look.fill, ClassOf(look, width)}];
    if (look.shape == Shape::kLine) {
      absl::StrAppend(&path, "M", SvgNumber(x), " ", SvgNumber(drawing.Y(device) + row / 2), "h",
                      SvgNumber(width));
    } else {
      absl::StrAppend(&path, "M", SvgNumber(x), " ", SvgNumber(drawing.Y(device) + look.inset), "h",
                      SvgNumber(width), "v", SvgNumber(row - 2 * look.inset), "h-",
                      SvgNumber(width), "z");
    }
  }
  for (const auto& [key, path] : paths) {
    const auto& [fill, css] = key;
    std::string attributes = absl::StrCat("class=\"", css, "\"");
    if (!fill.empty()) absl::StrAppend(&attributes, " fill=\"", fill, "\"");
    if (css == "pl-b") absl::StrAppend(&attributes, " stroke-width=\"0.7\"");
    svg.Path(path, attributes);
  }
  for (const ExecutedInstruction& s : drawing.SpansOfDevice(device)) {
    const Look look = drawing.LookOf(device, s);
    if (look.numbered) drawing.DrawNumber(device, s, look, svg);
  }
}

const char* PassName(const Instruction& s) {
  if (s.op == OpCode::kHostWait) return "waiting for the host";
  if (s.op != OpCode::kCompute) return s.op == OpCode::kWait ? "waiting" : OpCodeName(s.op);
  switch (s.action.kind) {
    case ActionKind::kForward:
      return "forward";
    case ActionKind::kBackward:
      return "backward";
    case ActionKind::kBackwardInput:
      return "backward, input part";
    case ActionKind::kBackwardWeight:
      return "backward, weight part";
    case ActionKind::kRecompute:
      return "recompute";
    case ActionKind::kStep:
    case ActionKind::kOffload:
    case ActionKind::kReload:
      break;
  }
  return "optimizer step";
}

class Data {
 public:
  explicit Data(const TimelineDrawing& drawing)
      : drawing_(drawing), ticks_(drawing.unit().ns >= 1000 ? 1000 : 1) {}

  std::string Json() {
    // As text: a value of nlohmann's for each number takes longer than the simulation.
    std::string devices;
    for (size_t d = 0; d < drawing_.trace().devices.size(); ++d) {
      absl::StrAppend(&devices, d > 0 ? "," : "", "[");
      AppendDevice(d, &devices);
      devices += ']';
    }
    nlohmann::json j;
    j["unit"] = drawing_.unit().name;
    j["ticks"] = ticks_;
    j["end"] = TicksAt(drawing_.end());
    j["left"] = TimelineDrawing::kLeft;
    j["width"] = kPlotWidth;
    j["top"] = TimelineDrawing::kTop;
    j["row"] = TimelineDrawing::kRow;
    j["gap"] = TimelineDrawing::kGap;
    j["slices"] = drawing_.program().schedule.num_slices;
    j["kinds"] = kinds_;
    j["messages"] = Messages();
    // What a script element may not hold.
    return absl::StrCat("{\"devices\":[", devices, "],",
                        absl::StrReplaceAll(j.dump().substr(1), {{"<", "\\u003c"}}));
  }

 private:
  int64_t TicksAt(int64_t ns) const {
    return std::llround(static_cast<double>(ns - drawing_.begin()) / drawing_.unit().ns * ticks_);
  }

  int KindOf(const ExecutedInstruction& s, const Look& look) {
    const bool of_stage = s.op == OpCode::kCompute;
    const int replicas = drawing_.program().schedule.placement.num_replicas();
    const auto key = std::make_tuple(std::string(PassName(s)), of_stage ? s.action.stage : -1,
                                     of_stage && replicas > 1 ? s.replica : -1,
                                     of_stage ? s.action.version : 0, look.fill);
    const auto [at, is_new] = kind_numbers_.try_emplace(key, static_cast<int>(kinds_.size()));
    if (is_new) {
      const auto& [name, stage, replica, version, fill] = key;
      kinds_.push_back({name, stage, replica, version, fill, ClassOf(look, kLeastBordered),
                        look.ink, look.inset, look.shape == Shape::kLine ? "line" : "box"});
    }
    return at->second;
  }

  // What spans look like and are called; all of one kind are alike on a device.
  struct Seen {
    Look look;
    int kind = -1;
  };
  Seen& SeenAs(size_t device, const ExecutedInstruction& s,
               std::map<std::tuple<OpCode, ActionKind, int, int, int>, Seen>* seen) {
    const auto [at, is_new] = seen->try_emplace(
        {s.op, s.action.kind, s.action.stage, s.replica, s.action.version}, Seen());
    if (is_new) at->second.look = drawing_.LookOf(device, s);
    return at->second;
  }

  void AppendDevice(size_t device, std::string* text) {
    std::map<std::tuple<OpCode, ActionKind, int, int, int>, Seen> seen;
    const int slices = drawing_.program().schedule.num_slices;
    int64_t last = 0;
    const char* comma = "";
    for (const ExecutedInstruction& s : drawing_.SpansOfDevice(device)) {
      if (s.end_ns <= s.begin_ns) continue;
      Seen& as = SeenAs(device, s, &seen);
      if (as.look.shape == Shape::kNothing) continue;
      if (as.kind < 0) as.kind = KindOf(s, as.look);
      const int64_t begin = TicksAt(s.begin_ns), end = TicksAt(s.end_ns);
      const int number = as.look.numbered ? s.action.micro_batch * slices + s.action.slice : -1;
      absl::StrAppend(text, comma, as.kind, ",", number, ",", begin - last, ",");
      absl::StrAppend(text, end - begin);
      last = end;
      comma = ",";
    }
  }

  nlohmann::json Messages() const {
    nlohmann::json list = nlohmann::json::array();
    for (const MessageTiming& m : drawing_.drawn_messages()) {
      list.push_back(m.from_device);
      list.push_back(m.to_device);
      list.push_back(TicksAt(drawing_.trace().devices[m.from_device].spans[m.send].begin_ns));
      list.push_back(TicksAt(drawing_.trace().devices[m.to_device].spans[m.wait].end_ns));
      list.push_back(m.gradient ? 1 : 0);
    }
    return list;
  }

  const TimelineDrawing& drawing_;
  const int ticks_;
  std::map<std::tuple<std::string, int, int, int, std::string>, int> kind_numbers_;
  nlohmann::json kinds_ = nlohmann::json::array();
};

}  // namespace

absl::StatusOr<std::string> TimelineJson(const Program& program, const Trace& trace,
                                         int64_t ns_per_unit) {
  PIPELAB_ASSIGN_OR_RETURN(
      const TimelineDrawing drawing,
      TimelineDrawing::Make(program, trace, kPlotWidth, ns_per_unit, kMostPageBoxes));
  return Data(drawing).Json();
}

absl::StatusOr<std::string> TimelineFigure(absl::string_view id, absl::string_view scheme,
                                           const Program& program, const Trace& trace) {
  PIPELAB_ASSIGN_OR_RETURN(const TimelineDrawing drawing,
                           TimelineDrawing::Make(program, trace, kPlotWidth, 0));
  Svg svg = drawing.Begin(id, scheme);
  svg.Open("class=\"pl-plot\"");
  drawing.DrawAxis(svg);
  for (size_t d = 0; d < trace.devices.size(); ++d) DrawDevicePaths(drawing, d, svg);
  drawing.DrawMessages(svg);
  svg.Close();
  drawing.DrawLegend(svg);
  return absl::StrCat("<figure class=\"timeline\">\n<div class=\"drawing\">\n",
                      std::move(svg).Finish(), "</div>\n<script type=\"application/json\">",
                      Data(drawing).Json(), "</script>\n</figure>\n");
}

}  // namespace pipelab
