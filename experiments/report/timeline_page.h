// A trace as a part of report.html: a drawing that is small, and what its script needs to zoom, pan
// and name what the pointer is on.
//
//   PIPELAB_ASSIGN_OR_RETURN(std::string figure, TimelineFigure("t1", "1f1b", program, trace));
//
// The drawing is TimelineSvg's, as wide as a page and with few elements: one path a device and
// colour. It stands alone where no script runs, and on paper. Beside it is JSON with the times to
// three decimals of the axis' unit; page/script.js draws from it whatever part is looked at.
//
//   unit, ticks: of the axis, and how many ticks of time are one unit; end: ticks of the step
//   left, width, top, row, gap: pixels of the plot
//   kinds: [name, stage (-1: none), replica (-1: one only), version, fill, class, ink, inset, css],
//     what boxes are; slices: token slices of a micro-batch
//   devices: a list a device of kind, micro-batch (slices times it, plus slice), ticks since the
//     end of the box before, ticks that it takes; and so on
//   messages: from, to, begin, end, gradient (1) or activation (0); and so on
//
// Errors: those of TimelineSvg; the JSON alone may have kMostPageBoxes actions.
#ifndef PIPELAB_EXPERIMENTS_REPORT_TIMELINE_PAGE_H_
#define PIPELAB_EXPERIMENTS_REPORT_TIMELINE_PAGE_H_

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "pipelines/ir/program.h"
#include "pipelines/ir/trace.h"

namespace pipelab {

absl::StatusOr<std::string> TimelineFigure(absl::string_view id, absl::string_view scheme,
                                           const Program& program, const Trace& trace);

inline constexpr int kMostPageBoxes = 1 << 20;

// The JSON alone, for a page that draws it all (experiments/serve); `ns_per_unit` as TimelineSvg's.
absl::StatusOr<std::string> TimelineJson(const Program& program, const Trace& trace,
                                         int64_t ns_per_unit);

}  // namespace pipelab

#endif  // PIPELAB_EXPERIMENTS_REPORT_TIMELINE_PAGE_H_
