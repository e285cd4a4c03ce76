#include "experiments/report/memory_svg.h"

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "experiments/report/markup.h"
#include "experiments/report/memory_table.h"
#include "experiments/report/svg.h"
#include "experiments/report/table.h"
#include "pipelines/analysis/analysis.h"
#include "pipelines/sim/memory_levels.h"
#include "tools/base/status_macros.h"

namespace pipelab {
namespace {

constexpr double kMemoryLeft = 78, kMemoryRight = 20, kMemoryTop = 48, kRow = 64, kGap = 22,
                 kMemoryAxis = 44;
constexpr double kMemoryWidth = 1000;  // as a timeline in a page: times stand below one another

// As MemoryColumns, from the bottom.
constexpr Colour kColours[] = {
    kBlue,   kSky,       Colour{0x00, 0x4d, 0x7a}, Colour{0x99, 0x99, 0x99}, kPurple, kGreen,
    kOrange, kVermillion};

class Drawing {
 public:
  Drawing(const Program& program, const Trace& trace, std::vector<std::vector<MemoryPoint>> levels,
          std::vector<MemoryPeak> peaks, int64_t ns_per_unit)
      : program_(program), trace_(trace), levels_(std::move(levels)), peaks_(std::move(peaks)) {
    for (const MemoryPeak& peak : peaks_) largest_ = std::max(largest_, peak.parts.total());
    unit_ = MemoryUnitFor(largest_);
    end_ = std::max<int64_t>(1, trace.makespan.value());
    time_unit_ = TimeUnitFor(end_, ns_per_unit);
  }

  std::string Draw(absl::string_view id, absl::string_view scheme) const;

 private:
  double X(int64_t ns) const {
    return kMemoryLeft + kMemoryWidth * static_cast<double>(ns) / static_cast<double>(end_);
  }
  double Bottom(size_t device) const {
    return kMemoryTop + kRow + static_cast<double>(device) * (kRow + kGap);
  }
  double Height(Bytes bytes) const { return largest_ == Bytes(0) ? 0 : kRow * (bytes / largest_); }
  std::string Text(Bytes bytes) const {
    return absl::StrCat(FixedNumber(unit_.Of(bytes), unit_.decimals), " ", unit_.name);
  }

  bool Used(size_t part) const;
  void DrawPart(size_t device, size_t part, Svg& svg) const;
  void DrawDevice(size_t device, Svg& svg) const;
  void DrawAxis(double y, Svg& svg) const;
  void DrawLegend(double y, Svg& svg) const;

  const Program& program_;
  const Trace& trace_;
  const std::vector<std::vector<MemoryPoint>> levels_;
  const std::vector<MemoryPeak> peaks_;
  Bytes largest_;
  MemoryUnit unit_{"B", 1, 0};
  int64_t end_ = 1;
  TimeUnit time_unit_{"ns", 1};
};

bool Drawing::Used(size_t part) const {
  for (const std::vector<MemoryPoint>& points : levels_) {
    for (const MemoryPoint& p : points) {
      if (MemoryColumns()[part].of(p.parts) > Bytes(0)) return true;
    }
  }
  return false;
}

// The area between the sum of the parts below and that with this one: steps to the right, then
// back. Only where the level changes is there anything to write.
void Drawing::DrawPart(size_t device, size_t part, Svg& svg) const {
  const std::vector<MemoryPoint>& points = levels_[device];
  const auto level = [&](const MemoryParts& parts, size_t count) {
    Bytes bytes;
    for (size_t i = 0; i < count; ++i) bytes += MemoryColumns()[i].of(parts);
    return ShortNumber(Bottom(device) - Height(bytes), 2);
  };
  struct Step {
    std::string x, top, base;
  };
  std::vector<Step> steps;  // each holds until the next one's x
  for (size_t i = 0; i < points.size(); ++i) {
    const int64_t until = i + 1 < points.size() ? points[i + 1].time_ns : end_;
    if (until <= points[i].time_ns) continue;
    steps.push_back({ShortNumber(X(points[i].time_ns), 2), level(points[i].parts, part + 1),
                     level(points[i].parts, part)});
  }
  const auto is_flat = [](const Step& s) { return s.top == s.base; };
  if (std::all_of(steps.begin(), steps.end(), is_flat)) return;
  std::string path = absl::StrCat("M", steps[0].x, " ", steps[0].top);
  for (size_t i = 1; i < steps.size(); ++i) {
    if (steps[i].top != steps[i - 1].top)
      absl::StrAppend(&path, "H", steps[i].x, "V", steps[i].top);
  }
  absl::StrAppend(&path, "H", ShortNumber(X(end_), 2), "V", steps.back().base);
  for (size_t i = steps.size() - 1; i > 0; --i) {
    if (steps[i].base != steps[i - 1].base)
      absl::StrAppend(&path, "H", steps[i].x, "V", steps[i - 1].base);
  }
  absl::StrAppend(&path, "H", steps[0].x, "z");
  svg.Path(path,
           absl::StrCat("fill=\"", Hex(kColours[part]), "\" class=\"pl-b\" stroke-width=\"0.4\""));
}

void Drawing::DrawDevice(size_t device, Svg& svg) const {
  const double y = Bottom(device);
  svg.Text(kMemoryLeft - 8, y - kRow / 2 + 4, absl::StrCat("device ", device),
           "class=\"pl-t\" text-anchor=\"end\"");
  svg.Rect(kMemoryLeft, y - kRow, kMemoryWidth, kRow, "class=\"pl-i\"");
  for (size_t part = 0; part < MemoryColumns().size(); ++part) {
    if (Used(part)) DrawPart(device, part, svg);
  }
  const MemoryPeak& peak = peaks_[device];
  const double top = y - Height(peak.parts.total());
  svg.Line(kMemoryLeft, top, kMemoryLeft + kMemoryWidth, top,
           "class=\"pl-s\" stroke-width=\"0.8\" stroke-dasharray=\"4 3\"");
  const std::string what = PeakInstruction(program_, static_cast<int>(device), peak);
  svg.Text(kMemoryLeft + kMemoryWidth, y - kRow - 4,
           absl::StrCat(Text(peak.parts.total()), what.empty() ? "" : absl::StrCat(" at ", what)),
           "class=\"pl-m\" font-size=\"10\" text-anchor=\"end\"");
}

void Drawing::DrawAxis(double y, Svg& svg) const {
  const Ticks ticks = NiceTicks(0, static_cast<double>(end_) / time_unit_.ns, 9);
  for (double v : ticks.values) {
    const double x = kMemoryLeft + kMemoryWidth * v * time_unit_.ns / static_cast<double>(end_);
    if (x > kMemoryLeft + kMemoryWidth + 1) continue;
    svg.Line(x, y, x, y + 5, "class=\"pl-l\"");
    svg.Text(x, y + 18, FixedNumber(v, ticks.decimals), "class=\"pl-m\" text-anchor=\"middle\"");
  }
  svg.Text(kMemoryLeft, y + 36, absl::StrCat("time [", time_unit_.name, "]"), "class=\"pl-t\"");
}

void Drawing::DrawLegend(double y, Svg& svg) const {
  double x = kMemoryLeft;
  for (size_t part = 0; part < MemoryColumns().size(); ++part) {
    if (!Used(part)) continue;
    const std::string name = MemoryColumns()[part].brief;
    svg.Rect(
        x, y, 16, 12,
        absl::StrCat("fill=\"", Hex(kColours[part]), "\" class=\"pl-b\" stroke-width=\"0.4\""));
    svg.Text(x + 22, y + 10, name, "class=\"pl-t\"");
    x += 36 + TextWidth(name, 12) * 0.95;
  }
}

std::string Drawing::Draw(absl::string_view id, absl::string_view scheme) const {
  const std::string title =
      absl::StrCat(scheme, ": memory of each device, simulated, at the times of the ",
                   OriginName(OriginOf(trace_)), " step; at most ", Text(largest_));
  std::string description = "One row per device, parts on top of one another, time to the right.";
  for (size_t d = 0; d < peaks_.size(); ++d) {
    absl::StrAppend(&description, " Device ", d, ": at most ", Text(peaks_[d].parts.total()), ".");
  }
  const double bottom = Bottom(peaks_.size() - 1);
  Svg svg(id, kMemoryLeft + kMemoryWidth + kMemoryRight, bottom + kMemoryAxis + 36, title,
          description);
  svg.Text(kMemoryLeft, 24, title, "class=\"pl-t\" font-size=\"14\" font-weight=\"600\"");
  for (size_t d = 0; d < peaks_.size(); ++d) DrawDevice(d, svg);
  DrawAxis(bottom, svg);
  DrawLegend(bottom + kMemoryAxis + 8, svg);
  return std::move(svg).Finish();
}

}  // namespace

absl::StatusOr<std::string> MemorySvg(absl::string_view id, absl::string_view scheme,
                                      const Program& program, const CostTable& costs,
                                      const Trace& trace, int64_t ns_per_unit) {
  PIPELAB_RETURN_IF_ERROR(MatchMessages(program, trace).status());
  std::vector<std::vector<MemoryPoint>> levels = MemoryLevels(program, costs, trace);
  size_t points = 0;
  for (const std::vector<MemoryPoint>& of_device : levels) points += of_device.size();
  if (points > static_cast<size_t>(kMostMemoryPoints)) {
    return absl::ResourceExhaustedError(absl::StrCat(
        points, " changes of memory are too many to draw; the limit is ", kMostMemoryPoints));
  }
  return Drawing(program, trace, std::move(levels), PeakMemory(program, costs), ns_per_unit)
      .Draw(id, scheme);
}

}  // namespace pipelab
