#include "experiments/commands/schedules_page.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "experiments/report/timeline_svg.h"
#include "experiments/report/timeline_text.h"
#include "experiments/simulate/simulated_run.h"
#include "pipelines/ir/schedule_json.h"
#include "pipelines/schedules/catalog.h"
#include "pipelines/schedules/closed_forms.h"
#include "pipelines/schedules/vocabulary.h"
#include "tools/base/status_macros.h"

namespace pipelab {
namespace {

constexpr char kHead[] = R"(# Schedules

Made from the catalogue by `bazel run //experiments:schedule_docs -- --update`; a test compares this
page with the code.

A forward takes 1 unit of time, a full backward 2, its input part and its weight part 1 each, a
message nothing. Pictures are terminal timelines (`pipelab show NAME`) with P = 4 devices and M = 8
micro-batches: one line per device, one character per unit. `a b c` are forwards of micro-batches
0 1 2, `A B C` backwards or their input parts, `+` weight parts, `.` idle.

*Bubble* is idle time / (devices x makespan). *In flight* is the most stage activations that a
device holds at one time, each from its forward to its B or W; a single number is that of every
device. Stages of V virtual stages per device are 1/V as large, token slices 1/s of a micro-batch,
so compare activations in flight / (V s).
)";

struct Size {
  int devices, micro_batches;
};
constexpr Size kPicture = {4, 8};
constexpr Size kOverview[] = {{4, 8}, {8, 16}, {8, 64}};

std::string Number(double value) { return absl::StrFormat("%.12g", value); }

// One number for each device, or a single one where all are equal.
std::string InFlightText(const RunFigures& figures) {
  const auto differs = [&](const DeviceFigures& d) {
    return d.peak_in_flight != figures.devices[0].peak_in_flight;
  };
  if (std::none_of(figures.devices.begin(), figures.devices.end(), differs))
    return absl::StrCat(figures.devices[0].peak_in_flight);
  return absl::StrJoin(figures.devices, " ", [](std::string* out, const DeviceFigures& d) {
    absl::StrAppend(out, d.peak_in_flight);
  });
}

// Only the lines of the timeline: the legend is in the page's head.
std::string Picture(const SimulatedRun& run) {
  std::string text;
  for (absl::string_view line :
       absl::StrSplit(TimelineText(run.program(), run.trace(), 120), '\n')) {
    if (absl::StartsWith(line, "device ")) absl::StrAppend(&text, line, "\n");
  }
  return text;
}

absl::StatusOr<SimulatedRun> RunAt(const Scheme& scheme, const Size& size) {
  PIPELAB_ASSIGN_OR_RETURN(Schedule schedule,
                           MakeSchedule(scheme.name, {size.devices, size.micro_batches}));
  return RunSimulated(std::move(schedule), SimulatedTimes());
}

constexpr char kFormulasHead[] = R"(
## Formulas

P devices, M micro-batches, V virtual stages, makespan T; r: a device's number from 0; g: the
largest group of micro-batches (`--group_size`); f: pairs of pipelines (`--replicas` / 2); u:
micro-batches of an update (`--update_interval`); s: token slices (`--slices`). A comparison counts
1 where it is true, else 0. *Weights* are stage weights that a device holds, older versions
included. If several rows of a scheme hold, the first one counts. Tests compare the formulas with
the simulator, exactly, for P from 2 to 16, M to 8 P and V to 4.

| scheme | holds for | makespan T | bubble | in flight on r | weights on r |
|---|---|---|---|---|---|
)";

std::string Formulas() {
  std::string text = kFormulasHead;
  for (const ClosedForm& form : ClosedForms()) {
    const std::string option =
        form.concatenation == Concatenation::kDirect
            ? ""
            : absl::StrCat("`--concatenation=", ConcatenationName(form.concatenation), "`, ");
    absl::StrAppend(&text, "| ", form.scheme, " | ", option, form.holds, " | ", form.makespan,
                    " | ", form.bubble, " | ", form.in_flight, " | ", form.weights, " |\n");
  }
  return text;
}

constexpr char kRingFormsHead[] = R"(
### Weights that travel

The rows above are for messages that take no time. Where they do, device d + 1 runs a turn behind
device d, and *lock step* is the makespan if all devices begin each turn together: its bubble is
1 - 3 M / T. A *hop* moves the weights of a stage, or the sum of its gradients, to the next device;
hops are those of all devices in a step.

| scheme | holds for | turns | lock step T | hops of weights | hops of gradients |
|---|---|---|---|---|---|
)";

std::string TurnForms() {
  std::string text = kRingFormsHead;
  for (const RingForm& form : RingForms()) {
    absl::StrAppend(&text, "| ", form.scheme, " | ", form.holds, " | ", form.turns, " | ",
                    form.lock_step, " | ", form.weight_hops, " | ", form.gradient_hops, " |\n");
  }
  return text;
}

std::string FiguresText(const RunFigures& f) {
  return absl::StrCat("Makespan ", Number(f.makespan), ", in flight ", InFlightText(f), ".");
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
    absl::StrAppend(&text,
                    "\nTwo branches of two stages and a join, `--devices=5 --micro_batches=8\n",
                    "--edges=0-1,1-4,2-3,3-4", what, "`:\n\n```\n", Picture(run), "```\n\n",
                    FiguresText(FiguresOf(run)), "\n");
  }
  return text;
}

// Lists of a small pipeline whose vocabulary is divided.
absl::StatusOr<std::string> VocabularyPictures(const Scheme& scheme) {
  std::string text =
      "\nOn a chain it is that scheme. With parts of a vocabulary on P = 2 devices, M = 2:\n";
  for (int barriers : {2, 1}) {
    SchemeParams params{2, 2};
    params.stages = VocabularyStages(2, 2 * scheme.default_virtual_stages, barriers);
    PIPELAB_ASSIGN_OR_RETURN(const Schedule schedule, MakeSchedule(scheme.name, params));
    absl::StrAppend(&text, "\n", barriers, barriers == 1 ? " barrier" : " barriers", ":\n\n```\n");
    for (const std::vector<Action>& list : schedule.order) {
      absl::StrAppend(&text,
                      absl::StrJoin(list, " ",
                                    [](std::string* out, const Action& a) {
                                      absl::StrAppend(out, ToString(a));
                                    }),
                      "\n");
    }
    text += "```\n";
  }
  const int parts = 2 + 2 * scheme.default_virtual_stages;
  absl::StrAppend(&text, "\nStages 0 and 1 are parts of the embedding, ", parts, " and ", parts + 1,
                  " parts of the output\nwith passes S (F) and T (B), ", parts + 2,
                  " is the loss; the rest is the chain.\n");
  if (scheme.name == "vocab_interlaced") {
    text += "Device r holds min(M, 3 (P - r) / 2), rounded down, activations of the chain.\n";
  }
  if (scheme.name == "vocab_1f1b") {
    text +=
        "Device r holds min(M, P - r + 2) activations of the chain with two barriers and\n"
        "min(M, P - r + 1) with one.\n";
  }
  return text;
}

// `pictures` has the timelines drawn so far, each with its scheme.
absl::StatusOr<std::string> Section(const Scheme& scheme,
                                    std::map<std::string, absl::string_view>& pictures) {
  std::string text = absl::StrCat("\n## ", scheme.name, "\n\n", scheme.paper, ".\n");
  PIPELAB_ASSIGN_OR_RETURN(const SimulatedRun drawn, RunAt(scheme, kPicture));
  const std::string picture = Picture(drawn);
  const auto [earlier, is_new] = pictures.emplace(picture, scheme.name);
  if (is_new) {
    absl::StrAppend(&text, "\n```\n", picture, "```\n");
  } else {
    absl::StrAppend(&text, "Its timeline is that of [", earlier->second, "](#", earlier->second,
                    ").\n");
  }
  absl::StrAppend(&text, "\n", FiguresText(FiguresOf(drawn)), "\n");
  if (TakesVocabularyParts(scheme)) {
    PIPELAB_ASSIGN_OR_RETURN(const std::string vocabulary, VocabularyPictures(scheme));
    text += vocabulary;
  } else if ((scheme.options & kStageGraph) != 0) {
    PIPELAB_ASSIGN_OR_RETURN(const std::string branches, GraphPictures(scheme));
    text += branches;
  }
  return text;
}

// At each size: the bubble, and for the last the activations in flight; "-" where it is not served.
std::string OverviewRow(const Scheme& scheme) {
  std::string bubbles, in_flight = "-";
  for (const Size& size : kOverview) {
    const absl::StatusOr<SimulatedRun> run = RunAt(scheme, size);
    absl::StrAppend(&bubbles, " | ",
                    run.ok() ? absl::StrFormat("%.2f", 100 * FiguresOf(*run).bubble) : "-");
    if (!run.ok()) {
      in_flight = "-";
      continue;
    }
    int most = 0;
    for (const DeviceFigures& d : FiguresOf(*run).devices) most = std::max(most, d.peak_in_flight);
    const Schedule& s = run->program().schedule;
    in_flight = Number(static_cast<double>(most) / (VirtualStagesOf(s) * s.num_slices));
  }
  return absl::StrCat("| [", scheme.name, "](#", scheme.name, ") | ", scheme.summary,
                      scheme.asynchronous ? "; asynchronous" : "", " | ",
                      scheme.default_virtual_stages, bubbles, " | ", in_flight, " |\n");
}

std::string OverviewTable() {
  std::string text = "\n| scheme | what it does | V";
  for (const Size& size : kOverview)
    absl::StrAppend(&text, " | bubble [%] at P = ", size.devices, ", M = ", size.micro_batches);
  absl::StrAppend(&text,
                  " | most in flight / (V s) at the last |\n|---|---|---|---|---|---|---|\n");
  for (const Scheme& scheme : Catalog()) absl::StrAppend(&text, OverviewRow(scheme));
  return text;
}

}  // namespace

absl::StatusOr<std::string> SchedulesPage() {
  std::string page = kHead;
  page += OverviewTable();
  page += Formulas();
  page += TurnForms();
  std::map<std::string, absl::string_view> pictures;
  for (const Scheme& scheme : Catalog()) {
    PIPELAB_ASSIGN_OR_RETURN(const std::string section, Section(scheme, pictures));
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
