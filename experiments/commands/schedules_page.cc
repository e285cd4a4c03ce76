#include "experiments/commands/schedules_page.h"

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "experiments/commands/simulated_run.h"
#include "experiments/report/timeline_svg.h"
#include "experiments/report/timeline_text.h"
#include "pipelines/ir/schedule_json.h"
#include "pipelines/schedules/catalog.h"
#include "pipelines/schedules/closed_forms.h"
#include "tools/base/status_macros.h"

namespace pipelab {
namespace {

constexpr char kHead[] = R"(# Schedules

Made from the catalogue by `bazel run //experiments:schedule_docs -- --update`; a test compares this
page with the code.

A forward takes 1 unit of time, a full backward 2, its input part and its weight part 1 each, a
message nothing. Pictures are terminal timelines (`pipelab show NAME`): one line per device, one
character per unit. `a b c` are forwards of micro-batches 0 1 2, `A B C` backwards or their input
parts, `+` weight parts, `.` idle.

*Bubble* is idle time / (devices x makespan). *In flight* is the most stage activations that a
device holds at one time, each from its forward to its B or W. A stage of a scheme with V virtual
stages is 1/V of a stage of a scheme with one. A token slice is 1 / slices of a micro-batch, in time
and in memory. So compare activations in flight / (virtual stages x slices).

The formulas use P devices, M micro-batches, V virtual stages and the makespan T. Further, r is a
device's number from 0, g the largest group of micro-batches (`--group_size`), f the number of pairs
of pipelines (`--replicas` / 2), u the micro-batches of an update (`--update_interval`), and s the
token slices (`--slices`). A comparison counts 1 where it is true and 0 where it is not. *Weights*
are stage weights that a device holds, older versions included. A test compares every formula with
the simulator, exactly, for every P from 2 to 16, M from 1 to 8 P and V from 1 to 4 that the scheme
allows and the column *holds for* names.
)";

struct Size {
  int devices, micro_batches;
};
// For the picture: the first that the scheme can serve. For the table: all that it can.
constexpr Size kPicture[] = {{4, 8}, {4, 4}, {4, 16}, {2, 4}, {2, 2}, {8, 16}, {1, 1}};
constexpr Size kTable[] = {{2, 4}, {4, 4}, {4, 8}, {4, 16}, {8, 8}, {8, 16}, {8, 64}};

std::string Number(double value) { return absl::StrFormat("%.12g", value); }

std::string InFlightText(const Figures& figures) {
  return absl::StrJoin(figures.devices, " ", [](std::string* out, const DeviceFigures& d) {
    absl::StrAppend(out, d.peak_in_flight);
  });
}

// Only the lines of the timeline: the legend is in the page's head.
std::string Picture(const Trace& trace) {
  std::string text;
  for (absl::string_view line : absl::StrSplit(TimelineText(trace, 120), '\n')) {
    if (absl::StartsWith(line, "device ")) absl::StrAppend(&text, line, "\n");
  }
  return text;
}

absl::StatusOr<SimulatedRun> RunAt(const Scheme& scheme, const Size& size) {
  PIPELAB_ASSIGN_OR_RETURN(Schedule schedule,
                           MakeSchedule(scheme.name, {size.devices, size.micro_batches}));
  return RunSimulated(std::move(schedule), SimulatedTimes());
}

std::string FormulaTable(const Scheme& scheme) {
  std::string text;
  for (const ClosedForm& form : ClosedForms()) {
    if (form.scheme != scheme.name) continue;
    const std::string option =
        form.concatenation == Concatenation::kDirect
            ? ""
            : absl::StrCat("`--concatenation=", ConcatenationName(form.concatenation), "`, ");
    absl::StrAppend(&text, "| ", option, form.holds, " | ", form.makespan, " | ", form.bubble,
                    " | ", form.in_flight, " | ", form.weights, " |\n");
  }
  if (text.empty()) return text;
  return absl::StrCat(
      "\n| holds for | makespan T | bubble | in flight on device r | weights on device r |\n"
      "|---|---|---|---|---|\n",
      text);
}

// What a chain of one stage per device does not show.
absl::StatusOr<std::string> GraphPictures(const Scheme& scheme) {
  std::string text;
  SchemeParams params{5, 8};
  params.stages = StageGraph::FromEdges(5, {{0, 1}, {1, 4}, {2, 3}, {3, 4}});
  for (const auto& [counts, what] :
       {std::make_pair(std::vector<int32_t>(), ""),
        std::make_pair(std::vector<int32_t>{8, 8, 4, 4, 8}, " --stage_micro_batches=8,8,4,4,8")}) {
    params.micro_batches_of_stage = counts;
    PIPELAB_ASSIGN_OR_RETURN(Schedule schedule, MakeSchedule(scheme.name, params));
    PIPELAB_ASSIGN_OR_RETURN(const SimulatedRun run,
                             RunSimulated(std::move(schedule), SimulatedTimes()));
    const Figures f = FiguresOf(run);
    absl::StrAppend(&text,
                    "\nTwo branches of two stages and a join, `--devices=5 --micro_batches=8\n",
                    "--edges=0-1,1-4,2-3,3-4", what, "`:\nmakespan ", Number(f.makespan),
                    ", bubble ", absl::StrFormat("%.2f", 100 * f.bubble), "%, in flight ",
                    InFlightText(f), ".\n\n```\n", Picture(run.trace()), "```\n");
  }
  return text;
}

absl::StatusOr<std::string> Section(const Scheme& scheme) {
  std::string text =
      absl::StrCat("\n## ", scheme.name, "\n\n", scheme.summary, ". ", scheme.paper, ".\n");
  absl::Status refused;
  bool drawn = false;
  for (const Size& size : kPicture) {
    const absl::StatusOr<SimulatedRun> run = RunAt(scheme, size);
    if (!run.ok()) {
      refused = run.status();
      continue;
    }
    absl::StrAppend(&text, "\n", size.devices, " devices, ", size.micro_batches,
                    " micro-batches; stages per device of one replica: ",
                    VirtualStagesOf(run->program().schedule),
                    "; replicas: ", run->program().schedule.placement.num_replicas(),
                    run->program().schedule.num_slices > 1
                        ? absl::StrCat("; token slices: ", run->program().schedule.num_slices)
                        : "",
                    ".\n\n```\n", Picture(run->trace()), "```\n");
    drawn = true;
    break;
  }
  if (!drawn) return refused;
  text += FormulaTable(scheme);
  absl::StrAppend(&text,
                  "\n| devices | micro-batches | makespan | bubble [%] | in flight, by device |\n"
                  "|---|---|---|---|---|\n");
  for (const Size& size : kTable) {
    const absl::StatusOr<SimulatedRun> run = RunAt(scheme, size);
    if (!run.ok()) continue;  // not every scheme serves every size
    const Figures f = FiguresOf(*run);
    absl::StrAppend(&text, "| ", size.devices, " | ", size.micro_batches, " | ", Number(f.makespan),
                    " | ", absl::StrFormat("%.2f", 100 * f.bubble), " | ", InFlightText(f), " |\n");
  }
  if ((scheme.options & kStageGraph) != 0) {
    PIPELAB_ASSIGN_OR_RETURN(const std::string pictures, GraphPictures(scheme));
    text += pictures;
  }
  return text;
}

absl::StatusOr<std::string> Overview() {
  std::string text =
      "\n| scheme | what it does | virtual stages | bubble at P = 4, M = 16 [%] | most in flight / "
      "(virtual stages x slices) |\n"
      "|---|---|---|---|---|\n";
  for (const Scheme& scheme : Catalog()) {
    const absl::StatusOr<SimulatedRun> run = RunAt(scheme, {4, 16});
    std::string bubble = "-", in_flight = "-";
    if (run.ok()) {
      const Figures f = FiguresOf(*run);
      int most = 0;
      for (const DeviceFigures& d : f.devices) most = std::max(most, d.peak_in_flight);
      bubble = absl::StrFormat("%.2f", 100 * f.bubble);
      const Schedule& s = run->program().schedule;
      in_flight = Number(static_cast<double>(most) / (VirtualStagesOf(s) * s.num_slices));
    }
    absl::StrAppend(&text, "| [", scheme.name, "](#", scheme.name, ") | ", scheme.summary,
                    scheme.asynchronous ? "; asynchronous" : "", " | ",
                    scheme.default_virtual_stages, " | ", bubble, " | ", in_flight, " |\n");
  }
  return text;
}

}  // namespace

absl::StatusOr<std::string> SchedulesPage() {
  std::string page = kHead;
  PIPELAB_ASSIGN_OR_RETURN(const std::string overview, Overview());
  page += overview;
  for (const Scheme& scheme : Catalog()) {
    PIPELAB_ASSIGN_OR_RETURN(const std::string section, Section(scheme));
    page += section;
  }
  return page;
}

absl::StatusOr<std::vector<std::pair<std::string, std::string>>> SchemePictures() {
  std::vector<std::pair<std::string, std::string>> files;
  for (const char* name : {"1f1b"}) {
    PIPELAB_ASSIGN_OR_RETURN(const Scheme* scheme, FindScheme(name));
    PIPELAB_ASSIGN_OR_RETURN(const SimulatedRun run, RunAt(*scheme, {4, 8}));
    PIPELAB_ASSIGN_OR_RETURN(std::string svg, TimelineSvg(name, name, run.program(), run.trace(),
                                                          run.nanoseconds_per_unit));
    files.emplace_back(absl::StrCat("docs/pictures/", name, ".svg"), std::move(svg));
  }
  return files;
}

}  // namespace pipelab
