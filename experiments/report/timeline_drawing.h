// What the drawings of a trace have in common: places, colours, axis, messages, legend. Only
// timeline_svg.cc (a file) and timeline_page.cc (a part of report.html) use this.
//
//   PIPELAB_ASSIGN_OR_RETURN(const TimelineDrawing drawing,
//                            TimelineDrawing::Make(program, trace, /*width=*/0));
//   Svg svg = drawing.Begin(id, scheme);
//   drawing.DrawAxis(svg);
//
// Lengths are pixels. `program` and `trace` outlive the drawing. Errors: those of TimelineSvg.
#ifndef PIPELAB_EXPERIMENTS_REPORT_TIMELINE_DRAWING_H_
#define PIPELAB_EXPERIMENTS_REPORT_TIMELINE_DRAWING_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "experiments/report/svg.h"
#include "experiments/report/timeline_svg.h"
#include "pipelines/analysis/analysis.h"
#include "pipelines/ir/program.h"
#include "pipelines/ir/trace.h"

namespace pipelab {

class TimelineDrawing {
 public:
  static constexpr double kLeft = 78, kTop = 48, kRow = 26, kGap = 10;

  // `width` of the step; 0: as much as the numbers of most boxes need, within what a page can hold.
  // `ns_per_unit`: as TimelineSvg's.
  static absl::StatusOr<TimelineDrawing> Make(const Program& program, const Trace& trace,
                                              double width, int64_t ns_per_unit,
                                              int most_boxes = kMostBoxes);

  double X(int64_t ns) const { return kLeft + static_cast<double>(ns - begin_) * pixels_per_ns_; }
  double Y(size_t device) const { return kTop + static_cast<double>(device) * (kRow + kGap); }
  double width() const { return X(end_) - kLeft; }
  int64_t begin() const { return begin_; }
  int64_t end() const { return end_; }
  const TimeUnit& unit() const { return unit_; }
  const Trace& trace() const { return trace_; }
  const Program& program() const { return program_; }
  DeviceSpans SpansOfDevice(size_t device) const { return SpansOf(program_, trace_, device); }

  // What a span is drawn as: nothing, a line, or a box so far inside its row.
  enum class Shape { kNothing, kLine, kBox };
  struct Look {
    Shape shape = Shape::kNothing;
    std::string fill = {};  // "#0072b2"; empty: the class says it
    const char* css = "";   // class without a fill of its own
    double inset = 0;
    bool numbered = false;  // has its micro-batch written on it, in `ink`
    std::string ink = {};
  };
  Look LookOf(size_t device, const Instruction& span) const;
  // "3", or "3.1" where a micro-batch comes in slices.
  std::string NumberOf(const Instruction& span) const;

  // Title, description, the devices' names and their idle rows.
  Svg Begin(absl::string_view id, absl::string_view scheme) const;
  void DrawAxis(Svg& svg) const;
  void DrawNumber(size_t device, const ExecutedInstruction& span, const Look& look, Svg& svg) const;
  // From a send to the end of the wait; empty above kMostMessageLines.
  const std::vector<MessageTiming>& drawn_messages() const { return drawn_messages_; }
  void DrawMessages(Svg& svg) const;
  void DrawLegend(Svg& svg) const;

 private:
  TimelineDrawing(const Program& program, const Trace& trace, TraceAnalysis analysis,
                  std::vector<MessageTiming> messages, double width, int64_t ns_per_unit);
  double FontOf(
      const ExecutedInstruction& span) const;  // of its number; 0: the box is too narrow for one
  void FindExtent();
  void FindShades();
  double WidthForNumbers() const;
  double Bottom() const { return Y(trace_.devices.size()) - kGap; }
  Colour ColourOf(size_t device, const Instruction& span) const;

  const Program& program_;
  const Trace& trace_;
  TraceAnalysis analysis_;
  size_t num_messages_ = 0;
  std::vector<MessageTiming> drawn_messages_;
  int64_t begin_ = 0, end_ = 1;
  std::vector<std::map<std::pair<int, int>, int>> shade_;  // [device][replica, stage] -> 0, 1, ...
  int most_shades_ = 1;
  double pixels_per_ns_ = 1;
  int64_t ns_per_unit_ = 0;
  TimeUnit unit_{"ns", 1};
};

}  // namespace pipelab

#endif  // PIPELAB_EXPERIMENTS_REPORT_TIMELINE_DRAWING_H_
