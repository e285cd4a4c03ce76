#include "pipelines/cluster/grid_links.h"

#include <algorithm>
#include <cmath>

#include "glog/logging.h"

namespace pipelab {
namespace {

int64_t DevicesBelow(const ClusterSpec& cluster, int level) {
  return level == 0 ? 1 : cluster.devices_in(level - 1);
}

// The innermost level that holds both.
int LevelOf(const ClusterSpec& cluster, int64_t a, int64_t b) {
  CHECK(a >= 0 && b >= 0 && std::max(a, b) < cluster.max_devices())
      << "devices " << a << " and " << b << " of " << cluster.name;
  int level = 0;
  while (a / cluster.devices_in(level) != b / cluster.devices_in(level)) ++level;
  return level;
}

PathCost Shared(const Connection& connection, int64_t transfers) {
  return {connection.latency.value,
          BytesPerSecond(connection.bandwidth.value.value() / static_cast<double>(transfers))};
}

PathCost Slower(const PathCost& a, const PathCost& b) {
  if (a.bandwidth.value() == 0) return b;
  if (b.bandwidth.value() == 0) return a;
  return {std::max(a.latency, b.latency), std::min(a.bandwidth, b.bandwidth)};
}

// What one of the equal transfers gets that cross this level, `per_unit` of them out of each unit
// of the level below and `per_level` within each of its own.
PathCost CrossingCost(const ClusterSpec& cluster, int level, const Connection& connection,
                      int64_t per_unit, int64_t per_level) {
  const ClusterLevel& l = cluster.levels[level];
  PathCost cost = Shared(connection, l.sharing == Sharing::kUnit ? per_unit : 1);
  if (!l.through.has_value()) return cost;
  const PathCost through = Shared(l.through->connection, per_level);
  return {cost.latency + through.latency, std::min(cost.bandwidth, through.bandwidth)};
}

}  // namespace

PathCost RingHop(const ClusterSpec& cluster, GridGroup group) {
  if (group.size <= 1) return {};
  // Hops between neighbours, from the innermost level that they cross to the one that holds all.
  const int outer = LevelOf(cluster, 0, (group.size - 1) * group.stride);
  PathCost slowest;
  for (int level = LevelOf(cluster, 0, group.stride); level <= outer; ++level) {
    const ClusterLevel& l = cluster.levels[level];
    const int64_t below = DevicesBelow(cluster, level), within = cluster.devices_in(level);
    // Every device of a unit is in some group; those of one group leave it once.
    const int64_t groups = std::min(group.stride, below);
    const int64_t hops = groups * (within / below);
    slowest = Slower(slowest, CrossingCost(cluster, level, l.ring.value_or(l.connection), groups,
                                           std::max<int64_t>(hops, 1)));
  }
  return slowest;
}

PathCost NeighbourHop(const ClusterSpec& cluster, int64_t from, int64_t to, int64_t copies) {
  const int level = LevelOf(cluster, from, to);
  const int64_t below = DevicesBelow(cluster, level);
  return CrossingCost(cluster, level, cluster.levels[level].connection, std::min(copies, below),
                      std::min(copies, cluster.devices_in(level)));
}

Nanoseconds RingTime(const PathCost& hop, int64_t d, Collective kind, Bytes bytes) {
  const int64_t steps = (kind == Collective::kAllReduce ? 2 : 1) * (d - 1);
  if (steps <= 0) return Nanoseconds(0);
  Nanoseconds time = hop.latency * steps;
  if (hop.bandwidth.value() > 0) {
    time +=
        Nanoseconds(std::llround(static_cast<double>(bytes.value()) * static_cast<double>(steps) /
                                 static_cast<double>(d) * 1e9 / hop.bandwidth.value()));
  }
  return time;
}

}  // namespace pipelab
