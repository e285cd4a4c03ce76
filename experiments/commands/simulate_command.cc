// pipelab simulate: figures of a simulated schedule.
#include <cmath>
#include <utility>
#include <vector>

#include "absl/flags/flag.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/string_view.h"
#include "absl/types/optional.h"
#include "experiments/commands/command.h"
#include "experiments/commands/named_run.h"
#include "experiments/commands/step_input.h"
#include "experiments/flags/output.h"
#include "experiments/report/memory_table.h"
#include "experiments/simulate/decimal.h"
#include "experiments/simulate/simulated_run.h"
#include "pipelines/analysis/arrivals.h"
#include "pipelines/sim/memory_levels.h"
#include "pipelines/sim/simulate.h"
#include "tools/base/json.h"
#include "tools/base/status_macros.h"
#include "tools/base/units.h"

ABSL_FLAG(std::string, json_out, "", "file of the figures as JSON; -: stdout; empty: a table");
ABSL_FLAG(std::string, arrivals, "",
          "time between arrivals of micro-batches, in ms with a model; prints latencies, too; "
          "empty: all arrive at the start");
ABSL_FLAG(std::string, when_full, "block",
          "with --arrivals, a micro-batch that comes while another one waits: block (it waits at "
          "its source) or drop_oldest (the one that waits is lost)");

namespace pipelab {
namespace {

// Bytes of each part, when the device is fullest.
nlohmann::json MemoryAsJson(const SimulatedRun& run, int device) {
  const MemoryPeak peak = PeakMemory(run.program(), run.costs(), device);
  nlohmann::json memory = {{"all", peak.parts.total().value()},
                           {"during", PeakInstruction(run.program(), device, peak)}};
  for (const MemoryColumn& c : MemoryColumns()) memory[c.metric] = c.of(peak.parts).value();
  return memory;
}

constexpr std::pair<absl::string_view, WhenFull> kWhenFull[] = {
    {"block", WhenFull::kBlock}, {"drop_oldest", WhenFull::kDropOldest}};

absl::StatusOr<WhenFull> WhenFullFromFlag() {
  const std::string text = absl::GetFlag(FLAGS_when_full);
  for (const auto& [name, value] : kWhenFull) {
    if (name != text) continue;
    if (value == WhenFull::kBlock || !absl::GetFlag(FLAGS_arrivals).empty()) return value;
    return absl::InvalidArgumentError(absl::StrCat("--when_full=", text, ": only with --arrivals"));
  }
  return absl::InvalidArgumentError(
      absl::StrCat("--when_full=", text, ": must be block or drop_oldest"));
}

// Micro-batches that arrive evenly.
struct Arrivals {
  double period = 0;  // units
  StreamFigures figures;
};

// A unit of time has so many decimals at least; what is no number is refused later.
int DecimalsOfArrivals() {
  const auto period = ParseDecimals("--arrivals", absl::GetFlag(FLAGS_arrivals), 1, "");
  return period.ok() ? (*period)[0].decimals : 0;
}

absl::StatusOr<absl::optional<Arrivals>> ArrivalsFromFlags(const SimulatedRun& run) {
  const std::string text = absl::GetFlag(FLAGS_arrivals);
  PIPELAB_ASSIGN_OR_RETURN(const WhenFull when_full, WhenFullFromFlag());
  if (text.empty()) return absl::optional<Arrivals>();
  if (run.program().schedule.stages.ReplayWindow() > 0) {
    return absl::InvalidArgumentError(absl::StrCat(
        "--arrivals=", text, ": with replay a sample has no one way through the stages"));
  }
  PIPELAB_ASSIGN_OR_RETURN(const std::vector<Decimal> period,
                           ParseDecimals("--arrivals", text, 1, ""));
  Arrivals arrivals;
  arrivals.period = period[0].value();
  const double ns = arrivals.period * static_cast<double>(run.nanoseconds_per_unit);
  const int count = run.program().schedule.num_micro_batches;
  constexpr double kMost = 1e18;  // ns
  if (ns * count > kMost) {
    return absl::InvalidArgumentError(absl::StrCat("--arrivals=", text, ": the last of ", count,
                                                   " micro-batches would come after 31 years"));
  }
  const std::vector<Nanoseconds> releases = EvenArrivals(count, Nanoseconds(std::llround(ns)));
  if (when_full == WhenFull::kDropOldest) {
    absl::optional<StreamRules> rules = SteadyRules(run.program(), run.trace());
    if (!rules.has_value()) {
      return absl::InvalidArgumentError(absl::StrCat(
          "--when_full=drop_oldest: the last half of the ", count,
          " micro-batches do not begin at even times; use a scheme with ticks, such as "
          "over_time, or more of them"));
    }
    rules->when_full = when_full;
    arrivals.figures = RunArrivals(releases, *rules);
    if (arrivals.figures.dropped > 0) return arrivals;
  }
  CostTable costs = run.costs();
  costs.releases = releases;
  PIPELAB_ASSIGN_OR_RETURN(const Trace trace, Simulate(run.program(), costs));
  arrivals.figures = FiguresOfReleases(run.program(), trace, costs.releases);
  return arrivals;
}

double InUnits(const SimulatedRun& run, Nanoseconds time) {
  return static_cast<double>(time.value()) / static_cast<double>(run.nanoseconds_per_unit);
}

nlohmann::json ArrivalsJson(const SimulatedRun& run, const Arrivals& a) {
  return {{"period", a.period},
          {"waited", a.figures.blocked},
          {"taken", a.figures.taken},
          {"dropped", a.figures.dropped},
          {"median_latency", InUnits(run, a.figures.median)},
          {"p99_latency", InUnits(run, a.figures.p99)},
          {"longest_latency", InUnits(run, a.figures.longest)},
          {"end", InUnits(run, a.figures.end)}};
}

std::string UnitOf(const SimulatedRun& run) {
  return run.unit.empty() ? "" : absl::StrCat(" ", run.unit);
}

std::string ArrivalsText(const SimulatedRun& run, const Arrivals& a) {
  const std::string unit = UnitOf(run);
  return absl::StrFormat(
      "\nA micro-batch every %.12g%s: latency %.12g%s (median), %.12g%s (99 %%), %.12g%s "
      "(longest); of %d, %d waited at their source and %d were dropped\n",
      a.period, unit, InUnits(run, a.figures.median), unit, InUnits(run, a.figures.p99), unit,
      InUnits(run, a.figures.longest), unit, a.figures.taken + a.figures.dropped, a.figures.blocked,
      a.figures.dropped);
}

std::string SimulationJson(const SimulatedRun& run, const RunFigures& figures,
                           const CsvSkipped& skipped, const absl::optional<Arrivals>& arrivals) {
  nlohmann::json devices = nlohmann::json::array();
  for (const DeviceFigures& d : figures.devices) {
    nlohmann::json device = {
        {"busy", d.busy}, {"idle", d.idle}, {"span", d.span}, {"peak_in_flight", d.peak_in_flight}};
    if (run.has_bytes) {
      device["peak_activation_bytes"] = d.peak_activation.value();
      device["peak_state_bytes"] = d.peak_state.value();
      device["peak_host_bytes"] = run.trace().devices[devices.size()].peak_host.value();
      device["peak_memory"] = MemoryAsJson(run, static_cast<int>(devices.size()));
    }
    devices.push_back(std::move(device));
  }
  nlohmann::json all = {{"schema", kOutputSchema},
                        {"makespan", figures.makespan},
                        {"bubble", figures.bubble},
                        {"devices", devices}};
  if (!run.unit.empty()) all["unit"] = run.unit;
  if (run.has_model) {
    // The fields that every command gives of a step; devices have both.
    const nlohmann::json step = StepAsJson(run.prediction);
    if (!run.note.empty()) all["note"] = run.note.substr(0, run.note.size() - 1);
    const nlohmann::json of_program = std::exchange(all["devices"], nlohmann::json::array());
    all.update(step);
    const int members = run.prediction.step.members;
    for (size_t p = 0; p < all["devices"].size(); ++p) {
      all["devices"][p].update(of_program[p * members]);
    }
  }
  if (arrivals.has_value()) all["arrivals"] = ArrivalsJson(run, *arrivals);
  if (skipped.total() > 0) all["skipped_cells"] = skipped.total();
  return DumpJson(all);
}

// What schedules with offloads have beside their devices; "" of others.
std::string HostText(const SimulatedRun& run) {
  Bytes most;
  int64_t copying = 0;
  for (const DeviceTrace& d : run.trace().devices) {
    most = std::max(most, d.peak_host);
    int64_t busy = 0;
    for (const HostCopy& copy : d.host_copies) busy += copy.end_ns - copy.begin_ns;
    copying = std::max(copying, busy);
  }
  if (most == Bytes(0)) return "";
  return absl::StrFormat(
      "\nAt the host: %s of a device at the most; copies take up to %.1f %% of the makespan\n",
      run.has_bytes ? ToString(most) : absl::StrCat(most.value(), " activations"),
      100 * static_cast<double>(copying) / static_cast<double>(run.trace().makespan.value()));
}

std::string SimulationTable(const std::string& source, const SimulatedRun& run,
                            const RunFigures& figures) {
  const std::string unit = UnitOf(run);
  std::string text = absl::StrFormat("%s%s%s: makespan %.12g%s, bubble %.2f %%\n\n", run.note,
                                     run.note.empty() ? "" : "\n", source, figures.makespan, unit,
                                     100 * figures.bubble);
  absl::StrAppendFormat(&text, "%6s %12s %12s %12s %14s", "device", "busy", "idle", "span",
                        "peak in flight");
  if (run.has_bytes) absl::StrAppendFormat(&text, " %12s %12s", "activations", "state");
  text += '\n';
  for (size_t d = 0; d < figures.devices.size(); ++d) {
    const DeviceFigures& f = figures.devices[d];
    absl::StrAppendFormat(&text, "%6d %12.12g %12.12g %12.12g %14d", d, f.busy, f.idle, f.span,
                          f.peak_in_flight);
    if (run.has_bytes) {
      absl::StrAppendFormat(&text, " %12s %12s", ToString(f.peak_activation),
                            ToString(f.peak_state));
    }
    text += '\n';
  }
  text += HostText(run);
  if (!run.has_bytes) return text;
  const Table memory = PeakMemoryTable("memory_parts", "Memory of each device at its fullest",
                                       {{source, &run.program(), &run.costs()}});
  return absl::StrCat(text, "\n", memory.ToTerminal());
}

}  // namespace

absl::StatusOr<std::string> SimulatedJson(const NamedRun& named) {
  PIPELAB_ASSIGN_OR_RETURN(const absl::optional<Arrivals> arrivals, ArrivalsFromFlags(named.run));
  return SimulationJson(named.run, FiguresOf(named.run), named.skipped, arrivals);
}

absl::Status SimulateCommand(const Words& words) {
  PIPELAB_ASSIGN_OR_RETURN(const NamedRun simulated, ReadNamedRun(words, DecimalsOfArrivals()));
  const SimulatedRun& run = simulated.run;
  const RunFigures figures = FiguresOf(run);
  PIPELAB_ASSIGN_OR_RETURN(const absl::optional<Arrivals> arrivals, ArrivalsFromFlags(run));
  const std::string json_out = absl::GetFlag(FLAGS_json_out);
  if (!json_out.empty()) {
    PIPELAB_RETURN_IF_ERROR(WriteOutput("--json_out", json_out,
                                        SimulationJson(run, figures, simulated.skipped, arrivals)));
  }
  if (json_out != "-") {
    std::string text = SimulationTable(simulated.source, run, figures);
    if (arrivals.has_value()) text += ArrivalsText(run, *arrivals);
    PIPELAB_RETURN_IF_ERROR(WriteOutput("stdout", "-", text));
  }
  return run.has_model ? CheckMemory(run.prediction) : absl::OkStatus();
}

}  // namespace pipelab
