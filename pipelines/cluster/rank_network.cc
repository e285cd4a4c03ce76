#include "pipelines/cluster/rank_network.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <map>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "glog/logging.h"
#include "pipelines/cluster/link_loads.h"

namespace pipelab {
namespace {

// The crossing of a message between two pipeline devices, from each of the copies of one to its
// like.
Crossing CrossingOf(const ClusterSpec& cluster, const RankGrid& grid, int p, int q) {
  Crossing c;
  c.from = grid.rank(p);
  c.to = grid.rank(q);
  const int level = LevelOf(cluster, c.from, c.to);
  c.of_unit = static_cast<double>(grid.copies_within(DevicesBelow(cluster, level)));
  c.of_level = static_cast<double>(grid.copies_within(cluster.devices_in(level)));
  return c;
}

// A step of such rings; `width`: bytes sent per byte counted.
PathCost StepOf(const ClusterSpec& cluster, const RingCrossing& ring, double width) {
  const RingLoads loads = LoadsOfRing(cluster, ring);
  return {loads.step_latency, BytesPerSecond(BandwidthUnder(cluster, loads.loads).value() / width),
          loads.all_reduce};
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
    network_.rings.emplace(devices, RouteOf(devices, RanksOf(devices, /*stride=*/1)));
    if (grid_.experts == 1) return;
    network_.expert_rings.emplace(devices, RouteOf(devices, RanksOf(devices, grid_.experts)));
  }

  Network Take() { return std::move(network_); }

 private:
  RingRoute RouteOf(const std::vector<int>& devices, const RingCrossing& crossing) {
    RingRoute route;
    route.ranks = static_cast<int64_t>(crossing.ranks.size());
    if (route.ranks < 2) return route;
    const RingLoads ring = LoadsOfRing(cluster_, crossing);
    const double width = static_cast<double>(BytesOf(grid_.type)) / 4;
    route.step_latency = ring.step_latency;
    route.all_reduce = ring.all_reduce;
    route.overhead = call_;
    // Its slowest hop, wherever that is.
    const BytesPerSecond own = BandwidthUnder(cluster_, ring.loads);
    route.uses.push_back({static_cast<int>(network_.links.size()), width});
    network_.links.push_back({absl::StrCat("ring of ", route.ranks), Nanoseconds(0), own});
    std::set<int> members;
    for (const int d : devices) members.insert(d % grid_.members);
    for (const auto& [key, load] : ring.loads) AddShared(key, load * width, members, &route);
    return route;
  }

  // All copies of each pipeline device, where all members are there, or those of a set, or each
  // `stride`-th of these; else the ranks of one place in the sets, as many rings at once as there
  // are places.
  RingCrossing RanksOf(const std::vector<int>& devices, int64_t stride) const {
    std::set<int> pipeline;
    for (const int d : devices) pipeline.insert(d / grid_.members);
    int64_t end = grid_.data;
    if (devices.size() == pipeline.size() * grid_.sharing_members() && IsOfOneSet(devices)) {
      end = grid_.sharing();
    } else if (devices.size() < pipeline.size() * grid_.members) {
      stride = grid_.sharing();
    }
    RingCrossing ring;
    for (const int p : pipeline) {
      for (int64_t d = 0; d < end; d += stride) ring.ranks.push_back(grid_.rank(p, d));
    }
    std::sort(ring.ranks.begin(), ring.ranks.end());
    ring.rings = grid_.tensor * stride;
    return ring;
  }

  bool IsOfOneSet(const std::vector<int>& devices) const {
    const auto set_of = [&](int d) { return d % grid_.members / grid_.sharing_members(); };
    return std::all_of(devices.begin(), devices.end(),
                       [&](int d) { return set_of(d) == set_of(devices[0]); });
  }

  // Adds the link for each of the ring's members, where it is one that a rank which stands for
  // others may use.
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
    const bool apart = grid_.order == RankOrder::kTensorPipelineData;
    const int64_t stride = apart ? grid_.together() : grid_.copies();
    const int64_t first = (key.a * unit + stride - 1) / stride;
    return first < grid_.pipeline && first * stride < (key.a + 1) * unit;
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

int64_t RankGrid::rank(int64_t p, int64_t d) const {
  if (order == RankOrder::kTensorPipelineData) {
    return (d / context * pipeline + p) * together() + d % context * tensor;
  }
  const int64_t mirror = pipeline - 1 - p;
  const bool mirrored = order == RankOrder::kTensorDataMirrored;
  const int64_t place = !mirrored ? p : p <= mirror ? 2 * p : 2 * mirror + 1;
  return (place * data + d) * tensor;
}

int64_t RankGrid::copies_within(int64_t ranks) const {
  if (order != RankOrder::kTensorPipelineData) return std::min(copies(), ranks);
  const int64_t pipelines =
      std::min(data / context, std::max<int64_t>(1, ranks / (pipeline * together())));
  return std::min(pipelines * together(), ranks);
}

RankNetwork::RankNetwork(const ClusterSpec* cluster, const RankGrid& grid)
    : cluster_(cluster), grid_(grid) {
  CHECK_LE(grid_.ranks(), cluster_->max_devices());
  CHECK_EQ(grid_.data % grid_.sharing(), 0);
  CHECK_EQ(grid_.sharing() % grid_.sharing_members(), 0);
  CHECK_EQ(grid_.data % grid_.members, 0);
  CHECK_EQ(grid_.data % grid_.context, 0);
  CHECK_EQ(grid_.data % grid_.experts, 0);
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

PathCost RankNetwork::PipelineRing() const {
  if (grid_.pipeline == 1) return {};
  return RingStep(*cluster_, {grid_.pipeline, std::abs(grid_.rank(1) - grid_.rank(0))});
}

PathCost RankNetwork::DataRing(int pipeline_device, int64_t copies) const {
  return RingOfCopies(pipeline_device, copies, /*stride=*/1);
}

PathCost RankNetwork::ExpertRing(int pipeline_device, int64_t copies) const {
  return RingOfCopies(pipeline_device, copies, grid_.experts);
}

PathCost RankNetwork::RingOfCopies(int pipeline_device, int64_t copies, int64_t stride) const {
  if (copies == 0) copies = grid_.data;
  if (copies <= stride) return {};
  RingCrossing ring;
  for (int64_t d = 0; d < copies; d += stride) {
    ring.ranks.push_back(grid_.rank(pipeline_device, d));
  }
  ring.rings = grid_.tensor * stride;
  return StepOf(*cluster_, ring, static_cast<double>(BytesOf(grid_.type)) / 4);
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
  return StepOf(cluster, ring, /*width=*/1);
}

Nanoseconds RingTime(const PathCost& step, int64_t d, Collective kind, Bytes bytes) {
  const int64_t steps = (kind == Collective::kAllReduce ? 2 : 1) * (d - 1);
  if (steps <= 0) return Nanoseconds(0);
  Nanoseconds time = step.latency * steps;
  if (step.bandwidth.value() > 0) {
    const double faster = kind == Collective::kAllReduce ? step.all_reduce : 1;
    time +=
        Nanoseconds(std::llround(static_cast<double>(bytes.value()) * static_cast<double>(steps) /
                                 static_cast<double>(d) * 1e9 / faster / step.bandwidth.value()));
  }
  return time;
}

}  // namespace pipelab
