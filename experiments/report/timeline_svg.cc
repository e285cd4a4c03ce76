#include "experiments/report/timeline_svg.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "experiments/report/markup.h"
#include "experiments/report/svg.h"
#include "experiments/report/table.h"
#include "experiments/report/timeline_drawing.h"
#include "tools/base/status_macros.h"

namespace pipelab {
namespace {

std::string HoverText(const TimelineDrawing& drawing, size_t device, const ExecutedInstruction& s) {
  const auto time = [&](int64_t ns) {
    return FixedNumber(static_cast<double>(ns - drawing.begin()) / drawing.unit().ns, 3);
  };
  std::string what = ToString(s.action);
  if (s.op != OpCode::kCompute)
    what = absl::StrCat(OpCodeName(s.op), " ", IsCollective(s.op) ? "" : what);
  return absl::StrCat("device ", device, ", ", what, ": ", time(s.begin_ns), " to ", time(s.end_ns),
                      " ", drawing.unit().name);
}

void DrawDeviceBoxes(const TimelineDrawing& drawing, size_t device, Svg& svg) {
  const double y = drawing.Y(device), row = TimelineDrawing::kRow;
  for (const ExecutedInstruction& s : drawing.SpansOfDevice(device)) {
    const TimelineDrawing::Look look = drawing.LookOf(device, s);
    const double x = drawing.X(s.begin_ns), width = drawing.X(s.end_ns) - x;
    if (look.shape == TimelineDrawing::Shape::kLine && width >= 1) {
      svg.Line(x, y + row / 2, x + width, y + row / 2,
               "class=\"pl-w\" stroke-width=\"1.5\" stroke-dasharray=\"2 3\"");
    }
    if (look.shape != TimelineDrawing::Shape::kBox) continue;
    std::string attributes = look.fill.empty() ? absl::StrCat("class=\"", look.css, "\"")
                                               : absl::StrCat("fill=\"", look.fill, "\"");
    if (look.numbered) {
      absl::StrAppend(&attributes, " class=\"pl-b\" stroke-width=\"", width >= 4 ? "0.7" : "0",
                      "\"");
    }
    svg.Rect(x, y + look.inset, width, row - 2 * look.inset, attributes,
             HoverText(drawing, device, s));
    if (look.numbered) drawing.DrawNumber(device, s, look, svg);
  }
}

}  // namespace

std::string TimelineTitle(absl::string_view scheme, const Program& program, const Trace& trace,
                          double bubble, int64_t ns_per_unit) {
  const std::string step =
      ns_per_unit > 0 ? absl::StrCat(ShortNumber(static_cast<double>(trace.makespan.value()) /
                                                     static_cast<double>(ns_per_unit),
                                                 3),
                                     " units")
                      : ToString(trace.makespan);
  return absl::StrCat(
      scheme, ": ", trace.devices.size(), trace.devices.size() == 1 ? " device, " : " devices, ",
      program.schedule.num_micro_batches,
      program.schedule.num_micro_batches == 1 ? " micro-batch; " : " micro-batches; ",
      OriginName(OriginOf(trace)), " step ", step, ", bubble ", FixedNumber(ToPercent(bubble), 1),
      " %");
}

absl::StatusOr<std::string> TimelineSvg(absl::string_view id, absl::string_view scheme,
                                        const Program& program, const Trace& trace,
                                        int64_t ns_per_unit) {
  PIPELAB_ASSIGN_OR_RETURN(const TimelineDrawing drawing,
                           TimelineDrawing::Make(program, trace, /*width=*/0, ns_per_unit));
  Svg svg = drawing.Begin(id, scheme);
  drawing.DrawAxis(svg);
  for (size_t d = 0; d < trace.devices.size(); ++d) DrawDeviceBoxes(drawing, d, svg);
  drawing.DrawMessages(svg);
  drawing.DrawLegend(svg);
  return std::move(svg).Finish();
}

}  // namespace pipelab
