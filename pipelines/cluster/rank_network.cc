#include "pipelines/cluster/rank_network.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
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

enum class LinkKind : uint8_t { kPair, kOut, kIn, kThrough };

// A link of the cluster: between two ends (ranks, or units of the level below), or the port of one.
struct LinkKey {
  LinkKind kind = LinkKind::kPair;
  int level = 0;
  int64_t a = 0, b = 0;

  friend bool operator<(const LinkKey& x, const LinkKey& y) {
    return std::tie(x.kind, x.level, x.a, x.b) < std::tie(y.kind, y.level, y.a, y.b);
  }
};

using Loads = std::map<LinkKey, double>;

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

bool IsGrid(const ClusterLevel& level) {
  return level.sharing == Sharing::kMesh || level.sharing == Sharing::kTorus;
}

// Transfers like the one between ranks `from` and `to`, at one time.
struct Crossing {
  int64_t from = 0, to = 0;
  double of_unit = 1;   // that leave a unit of the level below, and enter one
  double of_level = 1;  // within a unit of the level
};

// Its links, each with what a byte of one of the transfers loads it with; the latency.
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

const Connection& ConnectionOf(const ClusterSpec& cluster, const LinkKey& key) {
  const ClusterLevel& level = cluster.levels[key.level];
  return key.kind == LinkKind::kThrough ? level.through->connection : level.connection;
}

double BandwidthOf(const ClusterSpec& cluster, const LinkKey& key) {
  return ConnectionOf(cluster, key).bandwidth.value.value();
}

// What a transfer gets of links with such loads. 0: infinite.
BytesPerSecond BandwidthUnder(const ClusterSpec& cluster, const Loads& loads) {
  double slowest = 0;  // seconds a byte
  for (const auto& [key, load] : loads) {
    slowest = std::max(slowest, load / BandwidthOf(cluster, key));
  }
  return BytesPerSecond(slowest > 0 ? 1 / slowest : 0);
}

// A ring through these ranks, ascending, and so many like it at one time.
struct RingCrossing {
  std::vector<int64_t> ranks;
  int64_t rings = 1;
};

struct RingLoads {
  Nanoseconds step_latency;
  Loads loads;  // for a byte that a rank sends
};

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

// Of a message between two pipeline devices, from each of the copies of one to its like.
Crossing CrossingOf(const ClusterSpec& cluster, const RankGrid& grid, int p, int q) {
  Crossing c;
  c.from = grid.rank(p);
  c.to = grid.rank(q);
  const int level = LevelOf(cluster, c.from, c.to);
  c.of_unit = static_cast<double>(grid.copies_within(DevicesBelow(cluster, level)));
  c.of_level = static_cast<double>(grid.copies_within(cluster.devices_in(level)));
  return c;
}

std::string LinkName(const ClusterSpec& cluster, const LinkKey& key) {
  const ClusterLevel& level = cluster.levels[key.level];
  const bool of_devices = key.level == 0 || level.sharing == Sharing::kDevice;
  const std::string end =
      of_devices ? "device " : absl::StrCat(cluster.levels[key.level - 1].name, " ");
  switch (key.kind) {
    case LinkKind::kPair:
      if (!IsGrid(level)) return absl::StrCat(level.name, ": ", key.a, " to ", key.b);
      return absl::StrCat(level.name, ": ", end, key.a, " to ", end, key.b);
    case LinkKind::kOut:
      return absl::StrCat(level.name, ": out of ", end, key.a);
    case LinkKind::kIn:
      return absl::StrCat(level.name, ": into ", end, key.a);
    case LinkKind::kThrough:
      return absl::StrCat(level.through->name, " of ", level.name, " ", key.a);
  }
  return "";
}

}  // namespace

// Adds links as routes need them.
class RankNetwork::Builder {
 public:
  Builder(const ClusterSpec& cluster, const RankGrid& grid, Nanoseconds message_overhead,
          Nanoseconds call)
      : cluster_(cluster), grid_(grid), message_overhead_(message_overhead), call_(call) {
    network_ = UnconnectedNetwork(grid.pipeline * grid.members);
  }

  void AddRoute(int from, int to) {
    const int m = grid_.members, i = from % m;
    const Crossing c = CrossingOf(cluster_, grid_, from / m, to / m);
    Loads loads;
    Route& route = network_.RouteOf(from, to);
    route.latency = AddCrossing(cluster_, c, &loads) + message_overhead_;
    for (const auto& [key, load] : loads) route.uses.push_back({LinkOf(i, key), load});
  }

  // Devices of the program, ascending.
  void AddRing(const std::vector<int>& devices) {
    if (devices.size() < 2 || network_.rings.count(devices) > 0) return;
    const RingCrossing crossing = RanksOf(devices);
    const RingLoads ring = LoadsOfRing(cluster_, crossing);
    const double width = static_cast<double>(BytesOf(grid_.type)) / 4;
    RingRoute route;
    route.ranks = static_cast<int64_t>(crossing.ranks.size());
    route.step_latency = ring.step_latency;
    route.overhead = call_;
    // Its slowest hop, wherever that is.
    const BytesPerSecond own = BandwidthUnder(cluster_, ring.loads);
    route.uses.push_back({static_cast<int>(network_.links.size()), width});
    network_.links.push_back({absl::StrCat("ring of ", route.ranks), Nanoseconds(0), own});
    std::set<int> members;
    for (const int d : devices) members.insert(d % grid_.members);
    for (const auto& [key, load] : ring.loads) AddShared(key, load * width, members, &route);
    network_.rings.emplace(devices, std::move(route));
  }

  Network Take() { return std::move(network_); }

 private:
  // All copies of each pipeline device, where all members are there; else those of one member.
  RingCrossing RanksOf(const std::vector<int>& devices) const {
    std::set<int> pipeline;
    for (const int d : devices) pipeline.insert(d / grid_.members);
    RingCrossing ring;
    if (devices.size() < pipeline.size() * grid_.members) {
      for (const int p : pipeline) ring.ranks.push_back(grid_.rank(p));
      ring.rings = grid_.copies();
      return ring;
    }
    for (const int p : pipeline) {
      for (int64_t d = 0; d < grid_.data; ++d) ring.ranks.push_back(grid_.rank(p, d));
    }
    std::sort(ring.ranks.begin(), ring.ranks.end());
    ring.rings = grid_.tensor;
    return ring;
  }

  // Of the ring's members, where it is a link that a rank which stands for others may use.
  void AddShared(const LinkKey& key, double load, const std::set<int>& members, RingRoute* route) {
    const Sharing sharing = cluster_.levels[key.level].sharing;
    const bool through = key.kind == LinkKind::kThrough;
    const bool of_unit = through || sharing == Sharing::kUnit;
    if (of_unit && !HasRankOfUnit(key, through)) return;
    for (const int i : members) {
      if (!of_unit && id_of_key_.count({i, key}) == 0) continue;
      route->uses.push_back({LinkOf(i, key), load});
    }
  }

  bool HasRankOfUnit(const LinkKey& key, bool through) const {
    const int64_t unit =
        through ? cluster_.devices_in(key.level) : DevicesBelow(cluster_, key.level);
    const int64_t stride = grid_.rank(1), first = (key.a * unit + stride - 1) / stride;
    return first < grid_.pipeline && grid_.rank(first) < (key.a + 1) * unit;
  }

  // Members have links of their own: what stands on one counts all copies.
  int LinkOf(int member, const LinkKey& key) {
    const auto [it, made] =
        id_of_key_.emplace(std::make_pair(member, key), static_cast<int>(network_.links.size()));
    if (made) {
      network_.links.push_back(
          {LinkName(cluster_, key), Nanoseconds(0), BytesPerSecond(BandwidthOf(cluster_, key))});
    }
    return it->second;
  }

  const ClusterSpec& cluster_;
  const RankGrid& grid_;
  const Nanoseconds message_overhead_, call_;
  Network network_;
  std::map<std::pair<int, LinkKey>, int> id_of_key_;
};

int64_t RankGrid::copies_within(int64_t ranks) const {
  if (order == RankOrder::kTensorDataPipeline) return std::min(copies(), ranks);
  const int64_t pipelines = std::min(data, std::max<int64_t>(1, ranks / (pipeline * tensor)));
  return std::min(pipelines * tensor, ranks);
}

RankNetwork::RankNetwork(const ClusterSpec* cluster, const RankGrid& grid)
    : cluster_(cluster), grid_(grid) {
  CHECK_LE(grid_.ranks(), cluster_->max_devices());
  CHECK_EQ(grid_.data % grid_.members, 0);
  message_overhead_ = MessageOverhead();
}

Nanoseconds RankNetwork::CallOverhead() const {
  const auto& overhead = cluster_->device.collective_overhead;
  return overhead.has_value() ? overhead->value : Nanoseconds(0);
}

// A message's send and receive are a call of their own, and where it was sent in parts, so is the
// gather in the group that receives it (Narayanan et al. 2021, section 4.1).
Nanoseconds RankNetwork::MessageOverhead() const {
  const Nanoseconds call = CallOverhead();
  if (!grid_.divided_messages || grid_.tensor == 1 || grid_.message_calls) return call;
  return call + call +
         RingTime(RingStep(*cluster_, {grid_.tensor, 1}), grid_.tensor, Collective::kAllGather,
                  grid_.largest_message);
}

PathCost RankNetwork::MessageGather() const {
  if (grid_.tensor == 1) return {};
  const PathCost step = RingStep(*cluster_, {grid_.tensor, 1});
  const double share = static_cast<double>(grid_.tensor) / static_cast<double>(grid_.tensor - 1);
  return {SmallBroadcast(), BytesPerSecond(step.bandwidth.value() * share)};
}

Nanoseconds RankNetwork::SmallBroadcast() const {
  if (grid_.tensor == 1) return Nanoseconds(0);
  return Nanoseconds(CallOverhead().value() / 2) +
         RingStep(*cluster_, {grid_.tensor, 1}).latency * (grid_.tensor - 1);
}

PathCost RankNetwork::Message(int from, int to) const {
  Loads loads;
  const Nanoseconds latency =
      AddCrossing(*cluster_, CrossingOf(*cluster_, grid_, from, to), &loads) + message_overhead_;
  return {latency, BandwidthUnder(*cluster_, loads)};
}

PathCost RankNetwork::DataRing(int pipeline_device) const {
  if (grid_.data == 1) return {};
  RingCrossing ring;
  for (int64_t d = 0; d < grid_.data; ++d) {
    ring.ranks.push_back(grid_.rank(pipeline_device, d));
  }
  ring.rings = grid_.tensor;
  const RingLoads loads = LoadsOfRing(*cluster_, ring);
  const double width = static_cast<double>(BytesOf(grid_.type)) / 4;
  return {loads.step_latency,
          BytesPerSecond(BandwidthUnder(*cluster_, loads.loads).value() / width)};
}

Network RankNetwork::Of(const Program& program) const {
  Builder builder(*cluster_, grid_, message_overhead_, CallOverhead());
  const int devices = program.schedule.num_devices();
  CHECK_EQ(devices, grid_.pipeline * grid_.members);
  std::vector<bool> routed(static_cast<size_t>(devices) * devices);
  for (const pipelab::Message& m : program.messages) {
    const size_t pair = static_cast<size_t>(m.from_device) * devices + m.to_device;
    if (routed[pair]) continue;
    routed[pair] = true;
    builder.AddRoute(m.from_device, m.to_device);
  }
  const auto add_ring = [&](const std::vector<StageCopy>& members) {
    std::set<int> of;
    for (const StageCopy& m : members) of.insert(m.device);
    builder.AddRing({of.begin(), of.end()});
  };
  for (const Reduction& r : program.reductions) add_ring(r.members);
  for (const Gather& g : program.gathers) add_ring(g.members);
  if (program.norm.has_value()) add_ring(program.norm->members);
  return builder.Take();
}

Network RankNetwork::OfAllPairs() const {
  Builder builder(*cluster_, grid_, message_overhead_, CallOverhead());
  const int devices = grid_.pipeline * grid_.members;
  for (int from = 0; from < devices; ++from) {
    for (int to = 0; to < devices; ++to) {
      if (from != to) builder.AddRoute(from, to);
    }
  }
  return builder.Take();
}

absl::StatusOr<Network> MakeNetwork(const ClusterSpec& cluster, int num_devices) {
  const absl::Status valid = CheckCluster(cluster);
  CHECK(valid.ok()) << valid;
  if (num_devices < 1 || num_devices > cluster.max_devices()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "cluster ", cluster.name, " has ", cluster.max_devices(), " devices, not ", num_devices));
  }
  RankGrid grid;
  grid.pipeline = num_devices;
  return RankNetwork(&cluster, grid).OfAllPairs();
}

PathCost RingStep(const ClusterSpec& cluster, RankGroup group) {
  if (group.size <= 1) return {};
  RingCrossing ring;
  for (int64_t k = 0; k < group.size; ++k) ring.ranks.push_back(k * group.stride);
  ring.rings = group.stride;
  const RingLoads loads = LoadsOfRing(cluster, ring);
  return {loads.step_latency, BandwidthUnder(cluster, loads.loads)};
}

Nanoseconds RingTime(const PathCost& step, int64_t d, Collective kind, Bytes bytes) {
  const int64_t steps = (kind == Collective::kAllReduce ? 2 : 1) * (d - 1);
  if (steps <= 0) return Nanoseconds(0);
  Nanoseconds time = step.latency * steps;
  if (step.bandwidth.value() > 0) {
    time +=
        Nanoseconds(std::llround(static_cast<double>(bytes.value()) * static_cast<double>(steps) /
                                 static_cast<double>(d) * 1e9 / step.bandwidth.value()));
  }
  return time;
}

}  // namespace pipelab
