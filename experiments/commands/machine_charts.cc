#include "experiments/commands/machine_charts.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "experiments/commands/step_figures.h"
#include "experiments/report/chart_svg.h"
#include "models/graph/operation.h"
#include "pipelines/cluster/device.h"
#include "pipelines/cluster/machine_values.h"
#include "pipelines/cluster/rank_network.h"
#include "tools/base/status_macros.h"
#include "tools/base/text_columns.h"
#include "tools/base/units.h"

namespace pipelab {
namespace {

constexpr double kTera = 1e12, kGiga = 1e9;
constexpr int64_t kHeads = 32, kHeadSize = 128;

// Powers of two.
std::vector<int64_t> Doublings(int64_t least, int64_t most) {
  std::vector<int64_t> sizes;
  for (int64_t size = least; size <= most; size *= 2) sizes.push_back(size);
  return sizes;
}

std::string RoofText(const DeviceSpec& device, NumberType type) {
  return absl::StrCat("peak ", ExactText(device.peaks.at(type).value), ", memory ",
                      ExactText(device.memory_bandwidth.value));
}

// The line has an operation of each size.
template <typename MakeOperation>
absl::StatusOr<MachineLine> LineOf(std::string name, const DeviceSpec& device, NumberType type,
                                   const std::vector<int64_t>& sizes, const MakeOperation& make) {
  MachineLine line;
  line.name = std::move(name);
  line.roof = RoofText(device, type);
  for (const int64_t size : sizes) {
    const Operation o = make(size);
    PIPELAB_ASSIGN_OR_RETURN(const Nanoseconds time, OperationTime(device, type, o));
    line.at.push_back(o.flops.value() / ToSeconds(time) / kTera);
    const double intensity =
        o.flops.value() / static_cast<double>(o.numbers * BytesOf(type));  // flop/B
    line.roofs.push_back(std::min(device.peaks.at(type).value.value(),
                                  intensity * device.memory_bandwidth.value.value()) /
                         kTera);
  }
  return line;
}

// The type that a step has on such a device.
NumberType UsualType(const DeviceSpec& device) {
  for (const NumberType type : {NumberType::kBf16, NumberType::kFp16}) {
    if (device.peaks.count(type) > 0) return type;
  }
  return device.peaks.begin()->first;
}

absl::StatusOr<MachineChart> Products(const DeviceSpec& device) {
  MachineChart chart = {"products of n x n by n x n", "n", "Tflop/s", Doublings(256, 16384), {}};
  for (const NumberType type : {UsualType(device), NumberType::kFp8}) {
    if (device.peaks.count(type) == 0) continue;
    PIPELAB_ASSIGN_OR_RETURN(chart.lines.emplace_back(),
                             LineOf(NumberTypeName(type), device, type, chart.sizes,
                                    [](int64_t n) { return MatmulOperation(n, n, n); }));
  }
  return chart;
}

absl::StatusOr<MachineChart> Attention(const DeviceSpec& device) {
  MachineChart chart = {
      absl::StrFormat("causal attention of one sample, %d heads of %d", kHeads, kHeadSize),
      "tokens",
      "Tflop/s",
      Doublings(512, 32768),
      {}};
  const NumberType type = UsualType(device);
  const auto operation = [](int64_t tokens, bool backward) {
    const double forward = 2.0 * kHeads * kHeadSize * static_cast<double>(tokens * tokens);
    const int64_t numbers = tokens * kHeads * kHeadSize;
    const AttentionSize size = {tokens, kHeads, kHeadSize};
    return backward ? AttentionGradientOperation(Flops(2.5 * forward), 8 * numbers, size)
                    : AttentionOperation(Flops(forward), 4 * numbers, size);
  };
  for (const bool backward : {false, true}) {
    PIPELAB_ASSIGN_OR_RETURN(
        chart.lines.emplace_back(),
        LineOf(absl::StrCat(NumberTypeName(type), backward ? " backward" : " forward"), device,
               type, chart.sizes, [&](int64_t tokens) { return operation(tokens, backward); }));
  }
  return chart;
}

// Among the devices of each innermost unit, and of two units of each level above.
MachineChart AllReduces(const ClusterSpec& cluster) {
  MachineChart chart = {"all-reduce, bus bandwidth: 2 (d - 1) / d bytes over the time",
                        "MiB",
                        "GB/s",
                        Doublings(1, 1024),
                        {}};
  const absl::optional<Sourced<Nanoseconds>>& call = cluster.device.collective_overhead;
  for (int level = 0; level < static_cast<int>(cluster.levels.size()); ++level) {
    const int64_t d = level == 0 ? cluster.devices_in(0) : 2 * cluster.devices_in(level - 1);
    if (d < 2 || cluster.levels[level].size < 2) continue;
    const PathCost step = RingStep(cluster, {d, 1});
    MachineLine line;
    line.name = level == 0
                    ? absl::StrFormat("%d devices of a %s", d, cluster.levels[0].name)
                    : absl::StrFormat("%d devices of two %ss", d, cluster.levels[level - 1].name);
    for (const int64_t mebibytes : chart.sizes) {
      const Bytes bytes(mebibytes << 20);
      const Nanoseconds time = RingTime(step, d, Collective::kAllReduce, bytes) +
                               (call.has_value() ? call->value : Nanoseconds(0));
      line.at.push_back(2.0 * static_cast<double>(d - 1) / static_cast<double>(d) *
                        static_cast<double>(bytes.value()) / ToSeconds(time) / kGiga);
    }
    chart.lines.push_back(std::move(line));
  }
  return chart;
}

}  // namespace

absl::StatusOr<std::vector<MachineChart>> ChartsOf(const ClusterSpec& cluster) {
  std::vector<MachineChart> charts;
  PIPELAB_ASSIGN_OR_RETURN(charts.emplace_back(), Products(cluster.device));
  PIPELAB_ASSIGN_OR_RETURN(charts.emplace_back(), Attention(cluster.device));
  charts.push_back(AllReduces(cluster));
  if (charts.back().lines.empty()) charts.pop_back();  // one device alone
  return charts;
}

std::string ChartText(const MachineChart& chart) {
  constexpr double kWidth = 60;
  std::string text;
  for (const MachineLine& line : chart.lines) {
    const bool roofs = !line.roofs.empty();
    const double most =
        roofs ? line.roofs.back() : *std::max_element(line.at.begin(), line.at.end());
    std::vector<std::vector<std::string>> cells = {{chart.size, chart.unit, roofs ? "roof" : ""}};
    cells[0].push_back(absl::StrFormat("0 to %s %s", FourDigits(most), chart.unit));
    for (size_t i = 0; i < chart.sizes.size(); ++i) {
      const auto to = [&](double value) {
        return static_cast<size_t>(std::lround(std::min(1.0, value / most) * kWidth));
      };
      std::string bar(to(line.at[i]), '#');
      if (roofs) bar.resize(std::max(bar.size(), to(line.roofs[i])), '.');
      cells.push_back({absl::StrCat(chart.sizes[i]), FourDigits(line.at[i]),
                       roofs ? FourDigits(line.roofs[i]) : "", std::move(bar)});
    }
    absl::StrAppend(
        &text,
        Wrapped("", absl::StrCat(chart.title, "; ", line.name, roofs ? "; " : "", line.roof)),
        AlignColumns(cells, /*header_lines=*/1, {true, true, true, false}), "\n");
  }
  return text;
}

std::string ChartsSvg(const std::string& machine, const std::vector<MachineChart>& charts) {
  std::vector<std::string> drawings;
  for (const MachineChart& chart : charts) {
    ChartOptions options;
    options.id = absl::StrCat("chart", drawings.size());
    options.title = absl::StrCat(machine, ": ", chart.title);
    options.x_label = chart.size;
    options.y_label = chart.unit;
    options.doubling = true;
    std::vector<Series> series;
    for (const MachineLine& line : chart.lines) {
      series.push_back({line.name, line.at, chart.sizes});
      if (line.roofs.empty()) continue;
      // Lines that share a roof have it once.
      const auto same = [&](const Series& s) { return s.values == line.roofs; };
      if (std::any_of(series.begin(), series.end(), same)) continue;
      series.push_back({absl::StrCat("roof: ", line.roof), line.roofs, chart.sizes});
    }
    drawings.push_back(LineChartSvg(options, series));
  }
  return StackedSvg(drawings);
}

nlohmann::json ChartsJson(const std::vector<MachineChart>& charts) {
  nlohmann::json all = nlohmann::json::array();
  for (const MachineChart& chart : charts) {
    nlohmann::json lines = nlohmann::json::array();
    for (const MachineLine& line : chart.lines) {
      lines.push_back({{"name", line.name}, {"values", line.at}, {"roofs", line.roofs}});
    }
    all.push_back({{"title", chart.title},
                   {"size", chart.size},
                   {"unit", chart.unit},
                   {"sizes", chart.sizes},
                   {"lines", std::move(lines)}});
  }
  return all;
}

}  // namespace pipelab
