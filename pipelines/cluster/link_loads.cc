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

// From one rank to another on a level, in parts of what crosses.
struct Way {
  int64_t from, to;
  Nanoseconds latency;                 // of the level's connection
  double link = 1;                     // on the link of a pair or a mesh, or on a device's port
  double unit = 1;                     // on the way out of a unit and into one
  double level = 1;                    // on what the level leads through
  const RingCrossing* ring = nullptr;  // that the way is part of; null: a transfer
};

// A ring leaves a unit over all ports that its ranks have in it.
void AddPorts(const ClusterSpec& cluster, const Way& way, LinkKey port, Loads* loads) {
  std::vector<int64_t> ports = {port.a};
  if (way.ring != nullptr) {
    const std::vector<int64_t>& ranks = way.ring->ranks;
    const int64_t below = DevicesBelow(cluster, port.level), unit = port.a / below;
    ports.assign(std::lower_bound(ranks.begin(), ranks.end(), unit * below),
                 std::lower_bound(ranks.begin(), ranks.end(), (unit + 1) * below));
  }
  for (const int64_t rank : ports) {
    port.a = rank;
    (*loads)[port] += way.link / static_cast<double>(ports.size());
  }
}

// Returns the latency of the way.
Nanoseconds AddWay(const ClusterSpec& cluster, int index, const Way& way, Loads* loads) {
  const ClusterLevel& level = cluster.levels[index];
  const int64_t below = DevicesBelow(cluster, index);
  Nanoseconds latency = way.latency;
  switch (level.sharing) {
    case Sharing::kPair:
      (*loads)[{LinkKind::kPair, index, way.from, way.to}] += way.link;
      break;
    case Sharing::kDevice:
      AddPorts(cluster, way, {LinkKind::kOut, index, way.from, 0}, loads);
      AddPorts(cluster, way, {LinkKind::kIn, index, way.to, 0}, loads);
      break;
    case Sharing::kUnit:
      (*loads)[{LinkKind::kOut, index, way.from / below, 0}] += way.unit;
      (*loads)[{LinkKind::kIn, index, way.to / below, 0}] += way.unit;
      break;
    case Sharing::kMesh:
    case Sharing::kTorus: {
      const std::vector<LinkKey> hops = GridHops(level, index, way.from / below, way.to / below);
      for (const LinkKey& hop : hops) (*loads)[hop] += way.link;
      latency = latency * static_cast<int64_t>(hops.size());
      break;
    }
  }
  if (level.through.has_value()) {
    (*loads)[{LinkKind::kThrough, index, way.from / cluster.devices_in(index), 0}] += way.level;
    latency += level.through->connection.latency.value;
  }
  return latency;
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
  Way way{c.from, c.to, cluster.levels[index].connection.latency.value};
  way.unit = c.of_unit;
  way.level = c.of_level;
  return AddWay(cluster, index, way, loads);
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

namespace {

// The connections that a ring has inside of each unit that it is in.
class RingConnections {
 public:
  RingConnections(const ClusterSpec& cluster, const RingCrossing& ring)
      : cluster_(cluster), ranks_(ring.ranks) {}

  // In the level's unit that has the rank; null: the level's connection.
  const RingConnection* At(int level, int64_t rank) {
    if (cluster_.levels[level].rings.empty()) return nullptr;
    const int64_t unit = rank / cluster_.devices_in(level);
    if (level != level_ || unit != unit_) {
      level_ = level;
      unit_ = unit;
      at_ = cluster_.levels[level].RingOf(RanksInUnit());
    }
    return at_;
  }

 private:
  int64_t RanksInUnit() const {
    const int64_t size = cluster_.devices_in(level_);
    return std::lower_bound(ranks_.begin(), ranks_.end(), (unit_ + 1) * size) -
           std::lower_bound(ranks_.begin(), ranks_.end(), unit_ * size);
  }

  const ClusterSpec& cluster_;
  const std::vector<int64_t>& ranks_;
  int level_ = -1;
  int64_t unit_ = -1;
  const RingConnection* at_ = nullptr;
};

// `all_reduce`: of one, not of the ring's steps.
RingLoads LoadsOfRing(const ClusterSpec& cluster, const RingCrossing& ring, bool all_reduce) {
  RingLoads result;
  RingConnections connections(cluster, ring);
  const size_t n = ring.ranks.size();
  for (size_t k = 0; k < n; ++k) {
    const int64_t from = ring.ranks[k], to = ring.ranks[(k + 1) % n];
    const int index = LevelOf(cluster, from, to);
    const ClusterLevel& level = cluster.levels[index];
    Way way{from, to, level.connection.latency.value};
    if (const RingConnection* own = connections.At(index, from); own != nullptr) {
      const BytesPerSecond bandwidth = all_reduce && own->all_reduce.has_value()
                                           ? own->all_reduce->value
                                           : own->connection.bandwidth.value;
      way.latency = own->connection.latency.value;
      // It loads the level's links that much less.
      way.link = level.connection.bandwidth.value.value() / bandwidth.value();
    }
    way.unit = way.link * static_cast<double>(std::min(ring.rings, DevicesBelow(cluster, index)));
    way.level = static_cast<double>(std::min(ring.rings, cluster.devices_in(index)));
    way.ring = &ring;
    const Nanoseconds latency = AddWay(cluster, index, way, &result.loads);
    result.step_latency = std::max(result.step_latency, latency);
  }
  return result;
}

}  // namespace

RingLoads LoadsOfRing(const ClusterSpec& cluster, const RingCrossing& ring) {
  RingLoads loads = LoadsOfRing(cluster, ring, /*all_reduce=*/false);
  const bool differ =
      std::any_of(cluster.levels.begin(), cluster.levels.end(), [](const ClusterLevel& level) {
        return std::any_of(level.rings.begin(), level.rings.end(),
                           [](const RingConnection& r) { return r.all_reduce.has_value(); });
      });
  if (!differ || ring.ranks.size() < 2) return loads;
  const Loads of_all = LoadsOfRing(cluster, ring, /*all_reduce=*/true).loads;
  loads.all_reduce =
      BandwidthUnder(cluster, of_all).value() / BandwidthUnder(cluster, loads.loads).value();
  return loads;
}

RingLoads LoadsOfExchange(const ClusterSpec& cluster, const RingCrossing& group) {
  RingLoads result;
  RingConnections connections(cluster, group);
  const double part = 1 / static_cast<double>(group.ranks.size());
  for (const int64_t from : group.ranks) {
    for (const int64_t to : group.ranks) {
      if (from == to) continue;
      const int index = LevelOf(cluster, from, to);
      const Connection& connection = cluster.levels[index].connection;
      Way way{from, to, connection.latency.value};
      way.link = part;
      if (const RingConnection* own = connections.At(index, from);
          own != nullptr && own->all_to_all.has_value()) {
        way.link *= connection.bandwidth.value.value() / own->all_to_all->value.value();
      }
      way.unit =
          way.link * static_cast<double>(std::min(group.rings, DevicesBelow(cluster, index)));
      way.level = part * static_cast<double>(std::min(group.rings, cluster.devices_in(index)));
      const Nanoseconds latency = AddWay(cluster, index, way, &result.loads);
      result.step_latency = std::max(result.step_latency, latency);
    }
  }
  return result;
}

}  // namespace pipelab
