// pipelab synthesize: the best schedule for these times and this memory (docs/synthesis.md).
#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/flags/declare.h"
#include "absl/flags/flag.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "experiments/commands/command.h"
#include "experiments/commands/run_flags.h"
#include "experiments/commands/schedule_input.h"
#include "experiments/commands/step_input.h"
#include "experiments/commands/time_limit.h"
#include "experiments/flags/interrupt.h"
#include "experiments/flags/output.h"
#include "experiments/flags/waiting.h"
#include "experiments/plan_commands/plan_commands.h"
#include "experiments/plan_commands/synthesis_problems.h"
#include "experiments/report/table.h"
#include "pipelines/step/model_on_cluster.h"
#include "pipelines/synthesis/check_proof.h"
#include "pipelines/synthesis/step_synthesis.h"
#include "tools/base/json.h"
#include "tools/base/status_macros.h"

ABSL_DECLARE_FLAG(std::string, model);     // step_input.cc
ABSL_DECLARE_FLAG(std::string, json_out);  // simulate_command.cc
ABSL_DECLARE_FLAG(std::string, memory);    // plan_problem_flags.cc
ABSL_DECLARE_FLAG(uint64_t, seed);         // time_limit.cc
ABSL_FLAG(std::string, schedule_out, "",
          "file of the schedule, which other commands take in the place of a scheme's name: "
          "mine.txt, mine.csv or mine.json; empty: none");
ABSL_FLAG(std::string, freedoms, "split,placement,stages,recompute,offload",
          "what may be chosen besides the order: split (backwards in two parts), placement (stages "
          "on other devices than looped), stages (several a device), recompute (of stages, where "
          "memory is short; with --model), offload (what stages keep to the host, as well), slices "
          "(2 and 4 token slices of a micro-batch, besides); empty: nothing");
ABSL_FLAG(std::string, slow_device, "",
          "devices of another speed than the rest: 2:0.5 has device 2 at half of it");

namespace pipelab {
namespace {

absl::Status WriteSchedule(const Schedule& schedule) {
  const std::string file = absl::GetFlag(FLAGS_schedule_out);
  if (file.empty()) return absl::OkStatus();
  const char* const format = absl::EndsWith(file, ".json")  ? "json"
                             : absl::EndsWith(file, ".csv") ? "csv"
                                                            : "text";
  PIPELAB_ASSIGN_OR_RETURN(const std::string text, InFormat(schedule, format));
  return WriteOutput("--schedule_out", file, text);
}

absl::Status CheckScheduleOut(int slices) {
  const std::string file = absl::GetFlag(FLAGS_schedule_out);
  if (absl::EndsWith(file, ".csv") && slices > 1) {
    return absl::InvalidArgumentError(
        absl::StrCat("--schedule_out=", file,
                     ": CSV says no token slices; with them it must end with .txt or .json"));
  }
  for (const char* ending : {".txt", ".csv", ".json"}) {
    if (file.empty() || absl::EndsWith(file, ending)) return absl::OkStatus();
  }
  return absl::InvalidArgumentError(
      absl::StrCat("--schedule_out=", file, ": must end with .txt, .csv or .json"));
}

absl::StatusOr<std::vector<double>> SpeedsFromFlag(int devices) {
  std::vector<double> speeds;
  const std::string text = absl::GetFlag(FLAGS_slow_device);
  if (text.empty()) return speeds;
  speeds.assign(devices, 1);
  for (const absl::string_view word : absl::StrSplit(text, ',')) {
    const std::vector<absl::string_view> parts = absl::StrSplit(word, ':');
    int device = 0;
    double speed = 0;
    if (parts.size() != 2 || !absl::SimpleAtoi(parts[0], &device) || device < 0 ||
        device >= devices || !absl::SimpleAtod(parts[1], &speed) ||
        !(speed >= 1e-3 && speed <= 1e3)) {
      return absl::InvalidArgumentError(
          absl::StrCat("--slow_device=", text, ": must be DEVICE:SPEED, devices from 0 to ",
                       devices - 1, " and speeds from 0.001 to 1000, such as 2:0.5"));
    }
    speeds[device] = speed;
  }
  return speeds;
}

absl::Status SetFreedoms(StepSynthesisOptions* options) {
  options->split_backward = options->placement = false;
  options->recompute = options->offload = false;
  options->most_virtual_stages = options->most_slices = 1;
  const std::string text = absl::GetFlag(FLAGS_freedoms);
  for (const absl::string_view word : absl::StrSplit(text, ',', absl::SkipEmpty())) {
    if (word == "split") {
      options->split_backward = true;
    } else if (word == "placement") {
      options->placement = true;
    } else if (word == "offload") {
      options->offload = true;
    } else if (word == "recompute") {
      options->recompute = true;
    } else if (word == "stages") {
      options->most_virtual_stages = 4;
    } else if (word == "slices") {
      options->most_slices = 4;
    } else {
      return absl::InvalidArgumentError(
          absl::StrCat("--freedoms=", text, ": '", word,
                       "' is none of split, placement, stages, recompute, offload, slices"));
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<StepSynthesisOptions> SynthesisOptionsFromFlags(int devices) {
  StepSynthesisOptions options;
  PIPELAB_RETURN_IF_ERROR(SetFreedoms(&options));
  PIPELAB_RETURN_IF_ERROR(CheckScheduleOut(options.most_slices));
  PIPELAB_ASSIGN_OR_RETURN(options.search.time_limit, TimeLimitFromFlag(absl::Seconds(10)));
  options.search.rounds = 1 << 20;  // the time limit ends it
  options.search.exact_nodes = int64_t{1} << 24;
  options.search.seed = absl::GetFlag(FLAGS_seed);
  PIPELAB_ASSIGN_OR_RETURN(options.limits.speeds, SpeedsFromFlag(devices));
  PIPELAB_ASSIGN_OR_RETURN(options.limits.memory, SynthesisMemory());
  return options;
}

// The order that was found, in any way to give times.
struct FoundOrder {
  std::string placement, unit;
  double per_unit = 1e6;  // ns
  const SynthesisProblem* problem = nullptr;
  const Synthesis* synthesis = nullptr;
  double step = 0, catalogue = 0;  // units, as simulate has them; 0: none fits
  std::string scheme;
  int64_t floor = 0;  // ns: the least bound of all placements
};

std::string TimeInUnits(const FoundOrder& f, double ns) {
  return absl::StrFormat("%.9g%s%s", ns / f.per_unit, f.unit.empty() ? "" : " ", f.unit);
}

std::string BoundText(const FoundOrder& f) {
  const Proof& proof = f.synthesis->proof;
  if (proof.bound.value < proof.makespan && proof.optimal()) {
    return absl::StrFormat("every order was ruled out, in a tree of %d nodes",
                           f.synthesis->exact_nodes);
  }
  const Bound& b = proof.bound;
  return absl::StrCat(BoundReasonName(b.reason), ": device ", b.device, " not before ",
                      TimeInUnits(f, static_cast<double>(b.head)), ", then ",
                      TimeInUnits(f, static_cast<double>(b.work)), ", and ",
                      TimeInUnits(f, static_cast<double>(b.tail)), " behind it");
}

absl::Status Print(const FoundOrder& f, const std::string& table) {
  const Proof& proof = f.synthesis->proof;
  PIPELAB_RETURN_IF_ERROR(WriteSchedule(ScheduleOf(*f.problem, proof.words)));
  if (const std::string out = absl::GetFlag(FLAGS_json_out); !out.empty()) {
    const auto units = [&f](int64_t ns) { return static_cast<double>(ns) / f.per_unit; };
    PIPELAB_RETURN_IF_ERROR(WriteOutput("--json_out", out,
                                        DumpJson({{"schema", kOutputSchema},
                                                  {"placement", f.placement},
                                                  {"device_of_stage", f.problem->device_of_stage},
                                                  {"slices", f.problem->slices},
                                                  {"unit", f.unit},
                                                  {"passes", units(proof.makespan)},
                                                  {"lower_bound", units(proof.lower_bound())},
                                                  {"optimal", proof.optimal()},
                                                  {"reason", BoundReasonName(proof.bound.reason)},
                                                  {"gap", proof.gap()},
                                                  {"step", f.step},
                                                  {"catalogue_step", f.catalogue},
                                                  {"catalogue_scheme", f.scheme},
                                                  {"found_by", f.synthesis->found_by},
                                                  {"stopped", f.synthesis->stopped}})));
    if (out == "-") return absl::OkStatus();
  }
  std::string text = absl::StrFormat(
      "synthesized, %s: passes take %s, no order of this placement less than %s: gap %.2f %%\n"
      "why: %s\nfound by: %s%s\n",
      f.placement, TimeInUnits(f, static_cast<double>(proof.makespan)),
      TimeInUnits(f, static_cast<double>(proof.lower_bound())), 100 * proof.gap(), BoundText(f),
      f.synthesis->found_by,
      f.synthesis->stopped ? "; the time limit or Ctrl-C ended the search" : "");
  absl::StrAppendFormat(&text, "of all placements looked at: no order takes less than %s\n",
                        TimeInUnits(f, static_cast<double>(f.floor)));
  absl::StrAppendFormat(&text, "simulated: %.9g%s%s", f.step, f.unit.empty() ? "" : " ", f.unit);
  if (f.scheme.empty()) {
    text += "; no schedule of the catalogue fits\n";
  } else {
    absl::StrAppendFormat(&text, "; best of the catalogue: %.9g%s%s, %s (%+.2f %%)\n", f.catalogue,
                          f.unit.empty() ? "" : " ", f.unit, f.scheme,
                          100 * (f.catalogue / f.step - 1));
  }
  if (const std::string file = absl::GetFlag(FLAGS_schedule_out); !file.empty()) {
    absl::StrAppend(&text, "schedule: ", file, "\n");
  }
  return WriteOutput("stdout", "-", absl::StrCat(text, "\n", table));
}

absl::Status CheckBest(const FoundOrder& f) {
  const absl::Status proven = CheckProof(*f.problem, f.synthesis->proof);
  if (proven.ok()) return proven;
  return absl::InternalError(absl::StrCat("synthesize: ", proven.message()));
}

// For those who watch the gap shrink.
std::string NewsOf(const SynthesisProgress& p, absl::Duration passed) {
  const nlohmann::json news = {
      {"seconds", absl::ToDoubleSeconds(passed)},
      {"passes_ns", p.makespan},
      {"bound_ns", p.bound},
      {"gap", 1 - static_cast<double>(p.bound) / static_cast<double>(p.makespan)},  // as Proof::gap
      {"found_by", p.found_by}};
  return news.dump();
}

absl::Status SynthesizeModel(const StepConfig& config, const StepSynthesisOptions& options) {
  PIPELAB_RETURN_IF_ERROR(CheckNoTimesByHand());
  PIPELAB_ASSIGN_OR_RETURN(const std::unique_ptr<ModelOnCluster> on, LoadModelOnCluster(config));
  PIPELAB_RETURN_IF_ERROR(CheckHasTimes(*on));
  StepCache cache(on->step());
  PIPELAB_ASSIGN_OR_RETURN(const StepSynthesis found, SynthesizeStep(&cache, config, options));
  const PlacedSynthesis& best = found.best();
  FoundOrder f;
  f.placement = best.placement;
  f.unit = "ms";
  f.problem = &best.problem;
  f.synthesis = &best.synthesis;
  f.step = ToMs(best.prediction.step_time);
  f.scheme = found.catalogue.scheme;
  if (!f.scheme.empty()) f.catalogue = ToMs(found.catalogue.prediction.step_time);
  f.floor = best.synthesis.proof.lower_bound();
  std::string rows = absl::StrFormat("%-44s %12s %12s %8s %12s %12s\n", "placement", "passes [ms]",
                                     "bound [ms]", "gap [%]", "step [ms]", "mem. [GiB]");
  for (const PlacedSynthesis& placed : found.placed) {
    const Proof& proof = placed.synthesis.proof;
    f.floor = std::min(f.floor, proof.lower_bound());
    absl::StrAppendFormat(&rows, "%-44s %12.4f %12.4f %8.2f %12.4f %12.3f\n", placed.placement,
                          static_cast<double>(proof.makespan) * 1e-6,
                          static_cast<double>(proof.lower_bound()) * 1e-6, 100 * proof.gap(),
                          ToMs(placed.prediction.step_time),
                          ToGiB(placed.prediction.largest_device));
  }
  for (const std::string& refused : found.refused) absl::StrAppend(&rows, refused, "\n");
  PIPELAB_RETURN_IF_ERROR(CheckBest(f));
  return Print(f, rows);
}

// Times from a file or from options: the passes are all that there is.
absl::Status SynthesizeTimes(const StepConfig& config, const StepSynthesisOptions& options) {
  PIPELAB_ASSIGN_OR_RETURN(const GivenProblems given, ProblemsOfTimes(config, options));
  for (const auto& [placement, problem] : given.problems) {
    PIPELAB_RETURN_IF_ERROR(CheckScheduleOut(problem.slices));  // those of the file
  }
  std::vector<std::pair<std::string, Synthesis>> found;
  std::vector<const SynthesisProblem*> problems;
  absl::Status status;
  std::string rows =
      absl::StrFormat("%-44s %14s %14s %8s\n", "placement", "passes", "bound", "gap [%]");
  FoundOrder f;
  f.per_unit = static_cast<double>(given.nanoseconds_per_unit);
  f.unit = given.unit;
  f.floor = INT64_MAX;
  const absl::Time end = absl::Now() + options.search.time_limit;
  for (size_t i = 0; i < given.problems.size(); ++i) {
    SynthesisOptions search = options.search;
    search.time_limit = std::max(absl::Milliseconds(1), end - absl::Now()) /
                        static_cast<double>(given.problems.size() - i);
    absl::StatusOr<Synthesis> one = Synthesize(given.problems[i].second, search);
    if (!one.ok()) {
      if (status.ok()) status = one.status();
      absl::StrAppend(&rows, given.problems[i].first, ": ", one.status().message(), "\n");
      continue;
    }
    absl::StrAppendFormat(&rows, "%-44s %14.9g %14.9g %8.2f\n", given.problems[i].first,
                          static_cast<double>(one->proof.makespan) / f.per_unit,
                          static_cast<double>(one->proof.lower_bound()) / f.per_unit,
                          100 * one->proof.gap());
    f.floor = std::min(f.floor, one->proof.lower_bound());
    problems.push_back(&given.problems[i].second);
    found.push_back({given.problems[i].first, *std::move(one)});
  }
  if (found.empty()) return status;
  size_t best = 0;
  for (size_t i = 0; i < found.size(); ++i) {
    const Synthesis& one = found[i].second;
    if (one.proof.makespan < found[best].second.proof.makespan) best = i;
    if (one.catalogue.words.empty()) continue;
    const double makespan = static_cast<double>(one.catalogue.makespan) / f.per_unit;
    if (!f.scheme.empty() && makespan >= f.catalogue) continue;
    f.catalogue = makespan;
    f.scheme = absl::StrCat(one.catalogue.scheme, ", ", found[i].first);
  }
  f.placement = found[best].first;
  f.problem = problems[best];
  f.synthesis = &found[best].second;
  f.step = static_cast<double>(f.synthesis->proof.makespan) / f.per_unit;
  PIPELAB_RETURN_IF_ERROR(CheckBest(f));
  return Print(f, rows);
}

}  // namespace

absl::Status SynthesizeCommand(const Words& words) {
  if (words.size() != 2) {
    return absl::InvalidArgumentError(
        "synthesize: needs a configuration, such as 1f1b:P=4,M=8, and one alone");
  }
  PIPELAB_ASSIGN_OR_RETURN(const StepConfig config, ConfigFromWord(words[1]));
  if (config.has_schedule_file()) {
    return absl::InvalidArgumentError(absl::StrCat(
        words[1], ": synthesize makes a schedule; give a scheme's name and its sizes"));
  }
  PIPELAB_RETURN_IF_ERROR(FindScheme(config.scheme, "scheme").status());
  if (config.divides_vocabulary()) {
    return absl::InvalidArgumentError(
        absl::StrCat("vocabulary_barriers=", config.vocabulary_barriers,
                     ": synthesize orders passes of a chain alone; leave it out"));
  }
  if (config.pipeline < 1 || config.pipeline > 256 || config.micro_batches < 1) {
    return absl::InvalidArgumentError(
        absl::StrCat(words[1], ": P must be from 1 to 256 and M at least 1 for synthesize"));
  }
  PIPELAB_ASSIGN_OR_RETURN(StepSynthesisOptions options,
                           SynthesisOptionsFromFlags(config.pipeline));
  const InterruptGuard interrupt;
  options.search.stop = [&interrupt] { return interrupt.raised(); };
  const absl::Time begin = absl::Now();
  options.search.progress = [begin, least = INT64_MAX](const SynthesisProgress& p) mutable {
    if (p.makespan >= least) return;  // another placement's
    least = p.makespan;
    const absl::Duration passed = absl::Now() - begin;
    TellNews(NewsOf(p, passed));
    if (passed < absl::Seconds(1)) return;  // who waits no longer needs no news
    Waiting::Say(absl::StrFormat(
        "synthesize: %.1f s: passes %.6g ms, bound %.6g ms (%s)", absl::ToDoubleSeconds(passed),
        static_cast<double>(p.makespan) * 1e-6, static_cast<double>(p.bound) * 1e-6, p.found_by));
  };
  const bool model = !absl::GetFlag(FLAGS_model).empty() || !config.model.empty();
  const absl::Status status =
      model ? SynthesizeModel(config, options) : SynthesizeTimes(config, options);
  const std::string memory = absl::GetFlag(FLAGS_memory);
  if (!absl::IsResourceExhausted(status) || memory.empty()) return status;
  return absl::ResourceExhaustedError(absl::StrCat("--memory=", memory, ": ", status.message()));
}

}  // namespace pipelab
