// Draws each device's memory over time, its parts one on top of the other.
//
//   PIPELAB_ASSIGN_OR_RETURN(std::string svg, MemorySvg("m1", "1f1b", program, costs, trace));
//
// One row per device, all of one scale, time to the right; the line is the device's peak, with what
// it holds then and what it does (report/memory_table.h). Levels are predicted, from the order of
// instructions, at the times of the trace (sim/memory_levels.h). What rises and falls at one time
// is not seen.
//
// Errors: InvalidArgument when the trace is not one of the program; ResourceExhausted when there
// are more than kMostMemoryPoints to draw.
#ifndef PIPELAB_EXPERIMENTS_REPORT_MEMORY_SVG_H_
#define PIPELAB_EXPERIMENTS_REPORT_MEMORY_SVG_H_

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "pipelines/cost/cost_table.h"
#include "pipelines/ir/program.h"
#include "pipelines/ir/trace.h"

namespace pipelab {

inline constexpr int kMostMemoryPoints = 50000;

// `id` prefixes element ids; `scheme` is the name in the title; `ns_per_unit` as TimelineSvg's.
absl::StatusOr<std::string> MemorySvg(absl::string_view id, absl::string_view scheme,
                                      const Program& program, const CostTable& costs,
                                      const Trace& trace, int64_t ns_per_unit = 0);

}  // namespace pipelab

#endif  // PIPELAB_EXPERIMENTS_REPORT_MEMORY_SVG_H_
