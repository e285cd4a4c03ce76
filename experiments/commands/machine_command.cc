// pipelab machine: a machine's values with their origins and sources, its roofline and curves.
#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include "absl/flags/declare.h"
#include "absl/flags/flag.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"
#include "experiments/commands/command.h"
#include "experiments/commands/machine_charts.h"
#include "experiments/commands/step_figures.h"
#include "experiments/flags/output.h"
#include "pipelines/cluster/catalog.h"
#include "pipelines/cluster/kernel_rates.h"
#include "pipelines/cluster/machine_values.h"
#include "tools/base/json.h"
#include "tools/base/printable.h"
#include "tools/base/status_macros.h"
#include "tools/base/text_columns.h"

ABSL_DECLARE_FLAG(std::string, json);     // schedule_input.cc; `machine --json` means --json=-
ABSL_DECLARE_FLAG(std::string, svg_out);  // show_command.cc

namespace pipelab {
namespace {

// The innermost level's units first: "8 of a node x 128 of a cluster".
std::string LevelsText(const ClusterSpec& cluster) {
  std::vector<std::string> levels;
  for (const ClusterLevel& level : cluster.levels) {
    levels.push_back(absl::StrCat(level.size, " of a ", level.name));
  }
  return absl::StrJoin(levels, " x ");
}

std::string HeadText(const ClusterSpec& c) {
  std::string text = Wrapped("", absl::StrCat(c.name, ": ", c.title));
  absl::StrAppend(&text, Wrapped("", absl::StrCat("devices: ", c.device.name, ", ", LevelsText(c),
                                                  ", ", c.max_devices(), " in all")));
  if (c.device.rates != nullptr && !c.device.rates->name.empty()) {
    absl::StrAppend(&text, "measured rates: ", c.device.rates->name, "\n");
  }
  const std::string warning = CalibrationWarning(c);
  absl::StrAppend(&text,
                  Wrapped("", warning.empty() ? absl::StrCat("calibrated: ", c.device.calibrated)
                                              : absl::StrCat("Note: ", warning, ".")));
  return text;
}

// "levels[0].ring[2].latency" -> "node.ring to 8.latency", "device.memory" -> "memory".
std::string NameOf(const ClusterSpec& cluster, std::string place) {
  const std::string device = "device.";
  if (place.compare(0, device.size(), device) == 0) return place.substr(device.size());
  for (size_t i = 0; i < cluster.levels.size(); ++i) {
    const ClusterLevel& level = cluster.levels[i];
    const std::string at = absl::StrCat("levels[", i, "].");
    if (place.compare(0, at.size(), at) != 0) continue;
    absl::string_view of_level = absl::string_view(place).substr(at.size());
    size_t ring = 0;
    if (absl::ConsumePrefix(&of_level, "ring[") &&
        absl::SimpleAtoi(of_level.substr(0, of_level.find(']')), &ring) &&
        ring < level.rings.size()) {
      return absl::StrCat(level.name, ".ring to ", level.rings[ring].ranks,
                          of_level.substr(of_level.find(']') + 1));
    }
    return absl::StrCat(level.name, ".", place.substr(at.size()));
  }
  return place;
}

std::string ValuesText(const ClusterSpec& cluster) {
  std::vector<MachineValue> values = ValuesOf(cluster);
  size_t names = 0, texts = 0;
  for (MachineValue& v : values) {
    v.place = NameOf(cluster, v.place);
    names = std::max(names, TextWidth(v.place));
    texts = std::max(texts, TextWidth(v.text));
  }
  const int name_width = static_cast<int>(names), text_width = static_cast<int>(texts);
  std::string all = absl::StrFormat("%-*s  %-*s  %-10s  %s\n", name_width, "value", text_width, "",
                                    "origin", "source");
  constexpr size_t kShort = 40;              // and may be told twice
  std::map<std::string, std::string> first;  // the value that has a source first
  std::string last;
  for (const MachineValue& v : values) {
    const ValueOrigin origin = OriginOf(v.source);
    const std::string before = absl::StrFormat("%-*s  %-*s  %-10s  ", name_width, v.place,
                                               text_width, v.text, origin.name);
    const auto [told, is_new] = first.emplace(v.source, v.place);
    const std::string as = v.source == last ? "as above" : absl::StrCat("as ", told->second);
    absl::StrAppend(
        &all, Wrapped(before, is_new || origin.words.size() < kShort ? origin.words
                                                                     : absl::string_view(as)));
    last = v.source;
  }
  return all;
}

nlohmann::json ValuesJson(const ClusterSpec& cluster) {
  nlohmann::json all = nlohmann::json::array();
  for (const MachineValue& v : ValuesOf(cluster)) {
    const ValueOrigin origin = OriginOf(v.source);
    all.push_back({{"place", v.place},
                   {"value", v.text},
                   {"origin", std::string(origin.name)},
                   {"source", std::string(origin.words)}});
  }
  return all;
}

// The type of the largest peak that steps in 2 or 4 bytes have.
std::string PeakText(const DeviceSpec& device) {
  const auto peak =
      std::max_element(device.peaks.begin(), device.peaks.end(), [](const auto& a, const auto& b) {
        const auto rate = [](const auto& p) {
          return p.first == NumberType::kFp8 ? FlopsPerSecond(0) : p.second.value;
        };
        return rate(a) < rate(b);
      });
  return absl::StrCat(ExactText(peak->second.value), " ", NumberTypeName(peak->first));
}

absl::Status ListMachines(const std::string& json) {
  std::vector<std::vector<std::string>> lines = {
      {"machine", "device", "devices", "peak", "memory", "bandwidth", "efficiency"}};
  nlohmann::json machines = nlohmann::json::array();
  for (const std::string& name : ClusterNames()) {
    PIPELAB_ASSIGN_OR_RETURN(const ClusterSpec c, LoadCluster("--cluster", name));
    const DeviceSpec& d = c.device;
    const std::string efficiency = !d.calibrated.empty() ? "calibrated"
                                   : d.rates != nullptr  ? absl::StrCat("rates ", d.rates->name)
                                                         : "assumed";
    lines.push_back({name, d.name, absl::StrCat(c.max_devices()), PeakText(d),
                     ExactText(d.memory.value), ExactText(d.memory_bandwidth.value), efficiency});
    machines.push_back({{"name", name},
                        {"title", c.title},
                        {"device", d.name},
                        {"devices", c.max_devices()},
                        {"efficiency", efficiency}});
  }
  if (!json.empty()) {
    return WriteOutput("--json", json,
                       DumpJson({{"schema", kOutputSchema}, {"machines", std::move(machines)}}));
  }
  return WriteOutput(
      "stdout", "-",
      AlignColumns(lines, /*header_lines=*/1, {false, false, true, true, true, true, false}));
}

}  // namespace

absl::Status MachineCommand(const Words& words) {
  if (words.size() > 2) {
    return absl::InvalidArgumentError(
        absl::StrCat("'", words[2], "': machine takes one name or file, or none to list all"));
  }
  const std::string json = absl::GetFlag(FLAGS_json), svg = absl::GetFlag(FLAGS_svg_out);
  if (words.size() < 2) {
    if (svg.empty()) return ListMachines(json);
    return absl::InvalidArgumentError(
        absl::StrCat("--svg_out=", svg, ": needs a machine's name, such as dgx-b200"));
  }
  PIPELAB_ASSIGN_OR_RETURN(const ClusterSpec cluster, LoadCluster("", words[1]));
  const absl::StatusOr<std::vector<MachineChart>> made = ChartsOf(cluster);
  if (!made.ok()) {
    return absl::FailedPreconditionError(absl::StrCat(words[1], ": ", made.status().message()));
  }
  const std::vector<MachineChart>& charts = *made;
  if (!svg.empty()) {
    PIPELAB_RETURN_IF_ERROR(
        WriteOutput("--svg_out", svg, ChartsSvg(Printable(cluster.name), charts)));
    if (svg == "-") return absl::OkStatus();
  }
  if (!json.empty()) {
    return WriteOutput("--json", json,
                       DumpJson({{"schema", kOutputSchema},
                                 {"machine", cluster.name},
                                 {"title", cluster.title},
                                 {"device", cluster.device.name},
                                 {"devices", cluster.max_devices()},
                                 {"values", ValuesJson(cluster)},
                                 {"curves", ChartsJson(charts)}}));
  }
  std::string text =
      absl::StrCat(HeadText(cluster), "\n", ValuesText(cluster), "\n",
                   "computed from these values, each operation with its launch:\n\n");
  for (const MachineChart& chart : charts) absl::StrAppend(&text, ChartText(chart));
  text.pop_back();
  return WriteOutput("stdout", "-", text);
}

}  // namespace pipelab
