// pipelab show: a schedule as a picture.
#include <algorithm>
#include <cstdint>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "absl/flags/flag.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "experiments/commands/command.h"
#include "experiments/commands/named_run.h"
#include "experiments/flags/output.h"
#include "experiments/report/chrome_trace.h"
#include "experiments/report/memory_svg.h"
#include "experiments/report/timeline_svg.h"
#include "experiments/report/timeline_text.h"
#include "experiments/simulate/simulated_run.h"
#include "tools/base/status_macros.h"

ABSL_FLAG(int, columns, 100, "width of the terminal timeline in characters");
ABSL_FLAG(std::string, svg_out, "", "file of the drawing as SVG; -: stdout");
ABSL_FLAG(std::string, memory_out, "",
          "file of a drawing of each device's memory by part, as SVG, with sizes (--bytes, "
          "--activation_bytes, "
          "--weights, --workspace) or a model; -: stdout");
ABSL_FLAG(
    std::string, trace_out, "",
    "file of the timeline as a Chrome trace, with messages as flows and activations in flight "
    "as counters; -: stdout");

namespace pipelab {
namespace {

absl::StatusOr<std::string> TimelineOf(const NamedRun& shown) {
  return TimelineSvg("timeline", shown.name, shown.run.program(), shown.run.trace(),
                     shown.own_unit());
}

absl::StatusOr<std::string> MemoryOf(const NamedRun& shown) {
  const SimulatedRun& run = shown.run;
  return MemorySvg("memory", shown.name, run.program(), run.costs(), run.trace(), shown.own_unit());
}

absl::StatusOr<std::string> TraceOf(const NamedRun& shown) {
  const SimulatedRun& run = shown.run;
  // Without bytes memory is a count of activations, which "in flight" shows.
  return ChromeTrace(shown.name, run.program(), run.trace(),
                     run.has_bytes ? &run.costs() : nullptr);
}

// An output that was asked for.
struct Drawing {
  std::string option, path;
  absl::StatusOr<std::string> (*make)(const NamedRun&);
};

absl::Status CheckApart(const std::vector<Drawing>& drawings) {
  for (size_t i = 1; i < drawings.size(); ++i) {
    for (size_t j = 0; j < i; ++j) {
      if (drawings[i].path != drawings[j].path) continue;
      return absl::InvalidArgumentError(
          absl::StrCat(drawings[j].option, "=", drawings[j].path, " and ", drawings[i].option, "=",
                       drawings[i].path, ": only one of them can go there"));
    }
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status ShowCommand(const Words& words) {
  const int columns = absl::GetFlag(FLAGS_columns);
  if (columns < 1) {
    return absl::InvalidArgumentError(absl::StrCat("--columns=", columns, ": must be at least 1"));
  }
  std::vector<Drawing> drawings = {{"--svg_out", absl::GetFlag(FLAGS_svg_out), &TimelineOf},
                                   {"--memory_out", absl::GetFlag(FLAGS_memory_out), &MemoryOf},
                                   {"--trace_out", absl::GetFlag(FLAGS_trace_out), &TraceOf}};
  drawings.erase(std::remove_if(drawings.begin(), drawings.end(),
                                [](const Drawing& d) { return d.path.empty(); }),
                 drawings.end());
  PIPELAB_RETURN_IF_ERROR(CheckApart(drawings));
  int64_t most = std::numeric_limits<int64_t>::max();
  for (const Drawing& d : drawings) {
    if (d.make == &TimelineOf) most = std::min<int64_t>(most, kMostBoxes);
    if (d.make == &TraceOf) most = std::min<int64_t>(most, kMostTraced);
    // Each action changes what its device holds.
    if (d.make == &MemoryOf) most = std::min<int64_t>(most, kMostMemoryPoints);
  }
  PIPELAB_ASSIGN_OR_RETURN(const NamedRun shown, ReadNamedRun(words, /*least_decimals=*/6, most));
  const SimulatedRun& run = shown.run;
  std::vector<std::string> texts;
  for (const Drawing& d : drawings) {
    if (d.make == &MemoryOf && !run.has_bytes) {
      return absl::InvalidArgumentError(absl::StrCat(
          d.option, "=", d.path,
          ": needs sizes: --bytes, --activation_bytes, --weights, --workspace, or --model"));
    }
    PIPELAB_ASSIGN_OR_RETURN(texts.emplace_back(), d.make(shown));
  }
  bool to_stdout = false;
  for (size_t i = 0; i < drawings.size(); ++i) {
    PIPELAB_RETURN_IF_ERROR(WriteOutput(drawings[i].option, drawings[i].path, texts[i]));
    to_stdout = to_stdout || drawings[i].path == "-";
  }
  if (to_stdout) return absl::OkStatus();
  const RunFigures figures = FiguresOf(run);
  return WriteOutput(
      "stdout", "-",
      absl::StrFormat("%s%s%s: makespan %.12g%s, bubble %.2f %%%s\n%s", run.note,
                      run.note.empty() ? "" : "\n", shown.source, figures.makespan,
                      run.unit.empty() ? "" : " " + run.unit, 100 * figures.bubble,
                      run.unit.empty()
                          ? absl::StrFormat(" (a unit of time is drawn as %g ms)",
                                            static_cast<double>(run.nanoseconds_per_unit) / 1e6)
                          : "",
                      TimelineText(run.program(), run.trace(), columns, StdoutHasColours())));
}

}  // namespace pipelab
