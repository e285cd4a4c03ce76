// A trace in Chrome's trace-event format, for chrome://tracing and Perfetto.
//
//   PIPELAB_ASSIGN_OR_RETURN(std::string json, ChromeTrace("1f1b", program, trace));
//
// pid = device; tid 0 = compute (with optimizer steps), tid 1 = communication (sends, receives,
// waits, reductions), tid 2 = copies to the host and back, where there are any. Slices never
// overlap in a tid. A flow goes from the action that made a
// message to the one that uses it; the counter "in flight" is the number of forwards whose backward
// is not over, and with a cost table the counter "memory" has the bytes of each part, which viewers
// stack (sim/memory_levels.h). Times are microseconds with three digits, so no nanosecond is
// lost. One event a line.
//
// Errors: InvalidArgument when the trace is not one of the program.
#ifndef PIPELAB_EXPERIMENTS_REPORT_CHROME_TRACE_H_
#define PIPELAB_EXPERIMENTS_REPORT_CHROME_TRACE_H_

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "pipelines/cost/cost_table.h"
#include "pipelines/ir/program.h"
#include "pipelines/ir/trace.h"

namespace pipelab {

// Actions, of some hundred bytes each: viewers take no more, and nor does `show`.
inline constexpr int kMostTraced = 1 << 20;

absl::StatusOr<std::string> ChromeTrace(absl::string_view scheme, const Program& program,
                                        const Trace& trace, const CostTable* costs = nullptr);

}  // namespace pipelab

#endif  // PIPELAB_EXPERIMENTS_REPORT_CHROME_TRACE_H_
