#include "pipelines/cluster/link_loads.h"

#include <algorithm>

#include "glog/logging.h"

namespace pipelab {
namespace {

// From neighbour to neighbour on a mesh or torus, the last dimension first. `from` and `to` are
// units of the level below.
std::vector<LinkKey> GridHops(const ClusterLevel& level, int index, int64_t from, int64_t to) {
  const int64_t base = from / level.size * level.size, target = to - base;
  int64_t at = from - base, stride = 1;
  std::vector<LinkKey> path;
  for (size_t k = level.shape.size(); k-- > 0; stride *= level.shape[k]) {
    const int64_t n = level.shape[k], there = target / stride % n;
    for (int64_t here = at / stride % n; here != there; here = at / stride % n) {
      const int64_t up = (there - here + n) % n;  // hops upwards, around the end
      const bool rise = level.sharing == Sharing::kTorus ? 2 * up <= n : there > here;
      const int64_t next = at + ((here + (rise ? 1 : n - 1)) % n - here) * stride;
      path.push_back({LinkKind::kPair, index, base + at, base + next});
      at = next;
    }
  }
  return path;
}

const Connection& ConnectionOf(const ClusterSpec& cluster, const LinkKey& key) {
  const ClusterLevel& level = cluster.levels[key.level];
  return key.kind == LinkKind::kThrough ? level.through->connection : level.connection;
}

// A ring leaves a unit over all ports that its ranks have in it.
void AddDevicePorts(const ClusterSpec& cluster, const RingCrossing& ring, int index, int64_t rank,
                    LinkKind kind, double scale, Loads* loads) {
  const int64_t below = DevicesBelow(cluster, index), unit = rank / below;
  const auto begin = std::lower_bound(ring.ranks.begin(), ring.ranks.end(), unit * below);
  const auto end = std::lower_bound(begin, ring.ranks.end(), (unit + 1) * below);
  for (auto port = begin; port != end; ++port) {
    (*loads)[{kind, index, *port, 0}] += scale / static_cast<double>(end - begin);
  }
}

}  // namespace

int64_t DevicesBelow(const ClusterSpec& cluster, int level) {
  return level == 0 ? 1 : cluster.devices_in(level - 1);
}

int LevelOf(const ClusterSpec& cluster, int64_t a, int64_t b) {
  CHECK(a >= 0 && b >= 0 && std::max(a, b) < cluster.max_devices())
      << "devices " << a << " and " << b << " of " << cluster.name;
  int level = 0;
  while (a / cluster.devices_in(level) != b / cluster.devices_in(level)) ++level;
  return level;
}

bool IsGrid(const ClusterLevel& level) {
  return level.sharing == Sharing::kMesh || level.sharing == Sharing::kTorus;
}

Nanoseconds AddCrossing(const ClusterSpec& cluster, const Crossing& c, Loads* loads) {
  const int index = LevelOf(cluster, c.from, c.to);
  const ClusterLevel& level = cluster.levels[index];
  const int64_t below = DevicesBelow(cluster, index);
  Nanoseconds latency = level.connection.latency.value;
  switch (level.sharing) {
    case Sharing::kPair:
      (*loads)[{LinkKind::kPair, index, c.from, c.to}] += 1;
      break;
    case Sharing::kDevice:
      (*loads)[{LinkKind::kOut, index, c.from, 0}] += 1;
      (*loads)[{LinkKind::kIn, index, c.to, 0}] += 1;
      break;
    case Sharing::kUnit:
      (*loads)[{LinkKind::kOut, index, c.from / below, 0}] += c.of_unit;
      (*loads)[{LinkKind::kIn, index, c.to / below, 0}] += c.of_unit;
      break;
    case Sharing::kMesh:
    case Sharing::kTorus: {
      const std::vector<LinkKey> hops = GridHops(level, index, c.from / below, c.to / below);
      for (const LinkKey& hop : hops) (*loads)[hop] += 1;
      latency = latency * static_cast<int64_t>(hops.size());
      break;
    }
  }
  if (level.through.has_value()) {
    (*loads)[{LinkKind::kThrough, index, c.from / cluster.devices_in(index), 0}] += c.of_level;
    latency += level.through->connection.latency.value;
  }
  return latency;
}

double BandwidthOf(const ClusterSpec& cluster, const LinkKey& key) {
  return ConnectionOf(cluster, key).bandwidth.value.value();
}

BytesPerSecond BandwidthUnder(const ClusterSpec& cluster, const Loads& loads) {
  double slowest = 0;  // seconds a byte
  for (const auto& [key, load] : loads) {
    slowest = std::max(slowest, load / BandwidthOf(cluster, key));
  }
  return BytesPerSecond(slowest > 0 ? 1 / slowest : 0);
}

RingLoads LoadsOfRing(const ClusterSpec& cluster, const RingCrossing& ring) {
  RingLoads result;
  const size_t n = ring.ranks.size();
  for (size_t k = 0; k < n; ++k) {
    const int64_t from = ring.ranks[k], to = ring.ranks[(k + 1) % n];
    const int index = LevelOf(cluster, from, to);
    const ClusterLevel& level = cluster.levels[index];
    const int64_t below = DevicesBelow(cluster, index);
    const Connection& connection = level.ring.value_or(level.connection);
    // Where rings have a bandwidth of their own, they load the level's links that much less.
    const double scale =
        level.connection.bandwidth.value.value() / connection.bandwidth.value.value();
    Nanoseconds latency = connection.latency.value;
    if (level.sharing == Sharing::kDevice) {
      AddDevicePorts(cluster, ring, index, from, LinkKind::kOut, scale, &result.loads);
      AddDevicePorts(cluster, ring, index, to, LinkKind::kIn, scale, &result.loads);
    } else if (level.sharing == Sharing::kUnit) {
      const double rings = static_cast<double>(std::min(ring.rings, below)) * scale;
      result.loads[{LinkKind::kOut, index, from / below, 0}] += rings;
      result.loads[{LinkKind::kIn, index, to / below, 0}] += rings;
    } else if (IsGrid(level)) {
      const std::vector<LinkKey> hops = GridHops(level, index, from / below, to / below);
      for (const LinkKey& hop : hops) result.loads[hop] += scale;
      latency = latency * static_cast<int64_t>(hops.size());
    } else {
      result.loads[{LinkKind::kPair, index, from, to}] += scale;
    }
    if (level.through.has_value()) {
      result.loads[{LinkKind::kThrough, index, from / cluster.devices_in(index), 0}] +=
          static_cast<double>(std::min(ring.rings, cluster.devices_in(index)));
      latency += level.through->connection.latency.value;
    }
    result.step_latency = std::max(result.step_latency, latency);
  }
  return result;
}

}  // namespace pipelab
