#include "experiments/scaling/specification_table.h"

#include <set>
#include <string>

#include "absl/strings/match.h"

namespace pipelab {
namespace {

// Numbers of values by what their sources begin with.
struct Sources {
  int assumed = 0, recalled = 0, measured = 0, calibrated = 0, others = 0;

  template <typename T>
  void Count(const Sourced<T>& value) {
    if (absl::StartsWith(value.source, "assumed")) {
      ++assumed;
    } else if (absl::StartsWith(value.source, "measured")) {
      ++measured;
    } else if (absl::StartsWith(value.source, "calibrated")) {
      ++calibrated;
    } else if (absl::StrContains(value.source, "recalled")) {
      ++recalled;
    } else {
      ++others;
    }
  }

  void Count(const Connection& connection) {
    Count(connection.latency);
    Count(connection.bandwidth);
  }
};

Sources SourcesOf(const ClusterSpec& cluster) {
  Sources s;
  const DeviceSpec& device = cluster.device;
  for (const auto& [type, peak] : device.peaks) s.Count(peak);
  for (const auto& [kind, curve] : device.arithmetic) s.Count(curve);
  for (const auto& [kind, curve] : device.memory_efficiency_of) s.Count(curve);
  s.Count(device.memory);
  s.Count(device.memory_bandwidth);
  s.Count(device.memory_efficiency);
  s.Count(device.launch_overhead);
  if (device.product_tile.has_value()) s.Count(*device.product_tile);
  if (device.product_alignment.has_value()) s.Count(*device.product_alignment);
  if (device.host_launch.has_value()) s.Count(*device.host_launch);
  if (device.collective_overhead.has_value()) s.Count(*device.collective_overhead);
  if (device.step_set_up.has_value()) s.Count(*device.step_set_up);
  for (const ClusterLevel& level : cluster.levels) {
    s.Count(level.connection);
    for (const RingConnection& ring : level.rings) {
      s.Count(ring.connection);
      if (ring.all_reduce.has_value()) s.Count(*ring.all_reduce);
    }
    if (level.through.has_value()) s.Count(level.through->connection);
  }
  return s;
}

}  // namespace

Table SpecificationTable(const std::vector<ClusterSpec>& clusters) {
  Table t("specifications", "Cluster specifications of this report, and sources of their values");
  t.AddKey("cluster");
  const Origin computed = Origin::kComputed;
  t.AddColumn({"device", "device", "", "", computed, 0});
  t.AddColumn({"document", "values from documents", "documents", "", computed, 0});
  t.AddColumn({"recalled", "recalled", "", "", computed, 0});
  t.AddColumn({"assumed", "assumed", "", "", computed, 0});
  t.AddColumn({"measured", "measured", "", "", computed, 0});
  t.AddColumn({"calibrated", "calibrated", "", "", computed, 0});
  std::set<std::string> seen;
  for (const ClusterSpec& cluster : clusters) {
    if (!seen.insert(cluster.name).second) continue;
    const Sources s = SourcesOf(cluster);
    t.AddRow({Label(cluster.name), Computed(cluster.device.name), Computed(s.others),
              Computed(s.recalled), Computed(s.assumed), Computed(s.measured),
              Computed(s.calibrated)});
  }
  t.AddNote(
      "A curve of efficiencies is one value. All times and bytes come from these files and the "
      "models' graphs (docs/clusters.md).");
  return t;
}

}  // namespace pipelab
