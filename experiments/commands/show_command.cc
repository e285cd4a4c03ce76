// pipelab show: a schedule as a picture.
#include <string>

#include "absl/flags/flag.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "experiments/commands/command.h"
#include "experiments/commands/output.h"
#include "experiments/commands/paper_run.h"
#include "experiments/commands/plan_input.h"
#include "experiments/commands/run_flags.h"
#include "experiments/commands/schedule_input.h"
#include "experiments/report/chrome_trace.h"
#include "experiments/report/memory_svg.h"
#include "experiments/report/timeline_svg.h"
#include "experiments/report/timeline_text.h"
#include "tools/base/status_macros.h"

ABSL_FLAG(int, columns, 100, "width of the terminal timeline, in characters of time");
ABSL_FLAG(std::string, svg_out, "", "file of the drawing as SVG; -: stdout");
ABSL_FLAG(std::string, memory_out, "",
          "file of a drawing of each device's memory by part, as SVG, with sizes (--bytes, --kept, "
          "--weights, --workspace) or a model; -: stdout");
ABSL_FLAG(
    std::string, trace_out, "",
    "file of the timeline as a Chrome trace, with messages as flows and activations in flight "
    "as counters; -: stdout");

namespace pipelab {
namespace {

struct Shown {
  std::string source, name;
  PaperRun run;
};

absl::StatusOr<Shown> ShownFromFlags(const Words& words) {
  Shown shown;
  if (PlanIsGiven()) {
    PIPELAB_ASSIGN_OR_RETURN(const PlanInput input, ReadPlanInput(words));
    shown.source = shown.name = input.source;
    PIPELAB_ASSIGN_OR_RETURN(shown.run, RunPlanOnPaper(input));
    return shown;
  }
  PIPELAB_RETURN_IF_ERROR(CheckNoPlanFlags(/*takes_model=*/true));
  PIPELAB_ASSIGN_OR_RETURN(ScheduleInput input, ReadScheduleInput(words));
  PIPELAB_RETURN_IF_ERROR(CheckInput(input));
  PrintSkippedNote(input);
  shown.source = input.source;
  shown.name = input.kind == InputKind::kScheme ? input.source : input.schedule.name;
  // A unit is drawn as 1 ms.
  PIPELAB_ASSIGN_OR_RETURN(shown.run,
                           RunFromFlags(std::move(input.schedule), /*least_decimals=*/6));
  return shown;
}

}  // namespace

absl::Status ShowCommand(const Words& words) {
  const std::string svg_out = absl::GetFlag(FLAGS_svg_out);
  const std::string memory_out = absl::GetFlag(FLAGS_memory_out);
  const std::string trace_out = absl::GetFlag(FLAGS_trace_out);
  const int columns = absl::GetFlag(FLAGS_columns);
  const int to_stdout = (svg_out == "-") + (memory_out == "-") + (trace_out == "-");
  if (to_stdout > 1) {
    return absl::InvalidArgumentError(
        "--svg_out=-, --memory_out=- and --trace_out=-: only one goes to stdout");
  }
  if (columns < 1) {
    return absl::InvalidArgumentError(absl::StrCat("--columns=", columns, ": must be at least 1"));
  }
  PIPELAB_ASSIGN_OR_RETURN(const Shown shown, ShownFromFlags(words));
  const auto& [source, name, run] = shown;
  if (!svg_out.empty()) {
    PIPELAB_ASSIGN_OR_RETURN(const std::string svg,
                             TimelineSvg("timeline", name, run.program, run.trace));
    PIPELAB_RETURN_IF_ERROR(WriteOutput("--svg_out", svg_out, svg));
  }
  if (!memory_out.empty()) {
    if (!run.has_bytes) {
      return absl::InvalidArgumentError(
          absl::StrCat("--memory_out=", memory_out,
                       ": needs sizes: --bytes, --kept, --weights, --workspace, or --model"));
    }
    PIPELAB_ASSIGN_OR_RETURN(const std::string svg,
                             MemorySvg("memory", name, run.program, run.costs, run.trace));
    PIPELAB_RETURN_IF_ERROR(WriteOutput("--memory_out", memory_out, svg));
  }
  if (!trace_out.empty()) {
    // Without bytes memory is a count of activations, which "in flight" shows.
    const CostTable* costs = run.has_bytes ? &run.costs : nullptr;
    PIPELAB_ASSIGN_OR_RETURN(const std::string trace,
                             ChromeTrace(name, run.program, run.trace, costs));
    PIPELAB_RETURN_IF_ERROR(WriteOutput("--trace_out", trace_out, trace));
  }
  if (to_stdout > 0) return absl::OkStatus();
  const Figures figures = FiguresOf(run);
  return WriteOutput(
      "stdout", "-",
      absl::StrFormat("%s: makespan %.12g%s, bubble %.2f %%%s\n%s", source, figures.makespan,
                      run.unit.empty() ? "" : " " + run.unit, 100 * figures.bubble,
                      run.unit.empty() ? " (a unit of time is drawn as 1 ms)" : "",
                      TimelineText(run.trace, columns)));
}

}  // namespace pipelab
