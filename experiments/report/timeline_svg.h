// Draws a trace: one row per device, one box per action, time to the right.
//
//   PIPELAB_ASSIGN_OR_RETURN(std::string svg, TimelineSvg("t1", "1f1b", program, trace));
//
// The colour of a box tells the kind of its action, the shade which of the device's stages it
// belongs to, the number is the micro-batch; hovering names it with its times. Thin lines are
// messages, from their send to the end of the wait for them (gradients dashed; left out above
// kMostMessageLines). What stays grey is idle. The title has sizes, origin, step time and bubble;
// the axis has the unit of time.
//
// Errors: InvalidArgument when the trace is not one of the program; ResourceExhausted when there
// are more than kMostBoxes actions to draw.
#ifndef PIPELAB_EXPERIMENTS_REPORT_TIMELINE_SVG_H_
#define PIPELAB_EXPERIMENTS_REPORT_TIMELINE_SVG_H_

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "pipelines/ir/program.h"
#include "pipelines/ir/trace.h"

namespace pipelab {

inline constexpr int kMostBoxes = 20000;
inline constexpr int kMostMessageLines = 700;

// ResourceExhausted for more actions than a drawing takes.
absl::Status CheckDrawn(int64_t actions, int64_t most);

// `id` prefixes element ids; `scheme` is the name in the title. With `ns_per_unit` times are in
// units of the user's own, of so many nanoseconds each.
absl::StatusOr<std::string> TimelineSvg(absl::string_view id, absl::string_view scheme,
                                        const Program& program, const Trace& trace,
                                        int64_t ns_per_unit = 0);

// "1f1b: 4 devices, 8 micro-batches; simulated step 33.0 ms, bubble 27.3 %"
std::string TimelineTitle(absl::string_view scheme, const Program& program, const Trace& trace,
                          double bubble, int64_t ns_per_unit = 0);

}  // namespace pipelab

#endif  // PIPELAB_EXPERIMENTS_REPORT_TIMELINE_SVG_H_
