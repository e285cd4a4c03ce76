#include "pipelines/sim/transfers.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "glog/logging.h"
#include "pipelines/sim/check_costs.h"

namespace pipelab {
namespace {

constexpr double kRounding = 1e-12;  // of shares that are alike

}  // namespace

Transfers::Transfers(const Program& program, const CostTable& costs,
                     absl::Span<const std::vector<int>> rings)
    : program_(program), costs_(costs), paths_(program.schedule.num_devices()) {
  // Without a network only a ring shares a pair's link.
  if (!costs.network.empty() || (!rings.empty() && costs.bandwidth.value() > 0)) {
    FindSharedWays(rings);
  } else if (!program.messages.empty()) {
    PathOf(program.messages[0].from_device, program.messages[0].to_device);  // all are alike
  }
}

void Transfers::FindSharedWays(absl::Span<const std::vector<int>> rings) {
  const Network& network = costs_.network;
  for (const Link& link : network.links) bandwidth_.push_back(link.bandwidth.value());
  std::vector<std::vector<LinkUse>> uses_of_ring;
  for (const std::vector<int>& devices : rings) {
    std::vector<LinkUse>& uses = uses_of_ring.emplace_back();
    if (!network.empty()) {
      uses = RingOf(network, devices).uses;
      continue;
    }
    for (size_t hop = 0; hop < devices.size() && devices.size() > 1; ++hop) {
      const std::pair<int, int> pair(devices[hop], devices[(hop + 1) % devices.size()]);
      const auto it = hops_.emplace(pair, static_cast<int>(bandwidth_.size())).first;
      if (it->second == static_cast<int>(bandwidth_.size())) {
        bandwidth_.push_back(costs_.bandwidth.value());
      }
      uses.emplace_back(it->second);
    }
  }
  for (const Message& m : program_.messages) PathOf(m.from_device, m.to_device);
  std::vector<int> users(bandwidth_.size());
  for (const auto& uses : uses_of_ring) {
    for (const LinkUse& use : uses) ++users[use.link];
  }
  for (int from = 0; from < static_cast<int>(paths_.size()); ++from) {
    for (const Path& path : paths_[from]) {
      for (const LinkUse& use : UsesOf(from, path.to)) ++users[use.link];
    }
  }
  for (int from = 0; from < static_cast<int>(paths_.size()); ++from) {
    for (Path& path : paths_[from]) {
      path.shared = AddShared(UsesOf(from, path.to), users);
      if (path.shared >= 0) shared_[path.shared].latency = path.cost.latency.value();
    }
  }
  for (const auto& uses : uses_of_ring) {
    const int path = AddShared(uses, users);
    if (path >= 0) shared_[path].ring = static_cast<int32_t>(shared_of_ring_.size());
    shared_of_ring_.push_back(path);
  }
  active_ways_.resize(bandwidth_.size());
  capacity_.resize(bandwidth_.size());
  rising_.resize(bandwidth_.size());
}

std::vector<LinkUse> Transfers::UsesOf(int from, int to) const {
  if (!costs_.network.empty()) return costs_.network.RouteOf(from, to).uses;
  const auto hop = hops_.find({from, to});
  if (hop == hops_.end()) return {};
  return {hop->second};
}

// Index in shared_, or -1 where no link of finite bandwidth has other users.
int Transfers::AddShared(const std::vector<LinkUse>& uses, const std::vector<int>& users) {
  std::vector<LinkUse> finite;
  bool shared = false;
  for (const LinkUse& use : uses) {
    if (bandwidth_[use.link] == 0) continue;
    finite.push_back(use);
    shared = shared || users[use.link] > 1;
  }
  if (!shared) return -1;
  shared_.emplace_back().uses = std::move(finite);
  return static_cast<int>(shared_.size()) - 1;
}

Transfers::Path& Transfers::PathOf(int from, int to) {
  std::vector<Path>& paths = paths_[from];
  auto path = paths.begin();
  while (path != paths.end() && path->to != to) ++path;
  if (path != paths.end()) return *path;
  Path& added = paths.emplace_back();
  added.to = to;
  added.cost = costs_.PathBetween(from, to);
  return added;
}

absl::Status Transfers::CheckTimes(Bytes message, Nanoseconds most) const {
  for (int from = 0; from < static_cast<int>(paths_.size()); ++from) {
    for (const Path& path : paths_[from]) {
      const PathCost& cost = path.cost;
      if (cost.latency <= most && cost.TransferTime(message) <= most - cost.latency) continue;
      return LongerThan(
          most, absl::StrCat("messages of ", ToString(message), " from device ", from,
                             " to device ", path.to, " at ", ToString(cost.bandwidth), " take"));
    }
  }
  return absl::OkStatus();
}

Arrival Transfers::Send(int32_t message, int64_t bytes, int64_t time) {
  const Message& m = program_.messages[message];
  Path& path = PathOf(m.from_device, m.to_device);
  Arrival a;
  a.message = message;
  if (path.shared >= 0) {
    CHECK_GE(time, now_);
    starts_.push({time, sequence_++, path.shared, {message, static_cast<double>(bytes)}});
    return a;
  }
  a.begin = std::max(time, path.free_at);
  path.free_at = a.begin + path.cost.TransferTime(Bytes(bytes)).value();
  a.arrival = path.free_at + path.cost.latency.value() + LatencyOfEdge(m);
  return a;
}

int64_t Transfers::LatencyOfEdge(const Message& m) const {
  return m.is_hop() ? 0 : costs_.LatencyOfEdge(m.edge, m.gradient).value();
}

void Transfers::Begin(int ring, double bytes, int64_t time) {
  CHECK_GE(time, now_);
  starts_.push({time, sequence_++, shared_of_ring_[ring], {0, bytes}});
}

// The arrival of what is all on its way now.
int64_t Transfers::ArrivalOf(const SharedWay& path) const {
  return now_ + path.latency +
         (path.ring >= 0 ? 0 : LatencyOfEdge(program_.messages[path.transfer.message]));
}

void Transfers::Start(int index, const Waiting& message, std::vector<Arrival>* arrivals) {
  SharedWay& path = shared_[index];
  if (path.active) {
    path.queue.push_back(message);
    return;
  }
  path.transfer = {message.message, path.ring, now_, Arrival::kUnknown};
  if (message.bytes == 0) {
    path.transfer.arrival = ArrivalOf(path);
    arrivals->push_back(path.transfer);
    return;
  }
  path.active = true;
  path.remaining = message.bytes;
  path.rate = 0;
  path.since = now_;
  path.end = std::numeric_limits<int64_t>::max();
  for (const LinkUse& use : path.uses) {
    active_ways_[use.link].push_back(index);
    touched_links_.push_back(use.link);
  }
}

void Transfers::Finish(int index, std::vector<Arrival>* arrivals) {
  SharedWay& path = shared_[index];
  path.transfer.arrival = ArrivalOf(path);
  arrivals->push_back(path.transfer);
  path.active = false;
  for (const LinkUse& use : path.uses) {
    std::vector<int>& active = active_ways_[use.link];
    active.erase(std::find(active.begin(), active.end(), index));
    touched_links_.push_back(use.link);
  }
  while (!path.active && !path.queue.empty()) {
    const Waiting next = path.queue.front();
    path.queue.pop_front();
    Start(index, next, arrivals);
  }
}

// Active paths that the touched links reach by way of links that active paths have in common.
std::vector<int> Transfers::Affected() {
  std::vector<int> affected;
  for (size_t at = 0; at < touched_links_.size(); ++at) {
    for (int index : active_ways_[touched_links_[at]]) {
      SharedWay& path = shared_[index];
      if (path.visited) continue;
      path.visited = true;
      affected.push_back(index);
      for (const LinkUse& use : path.uses) touched_links_.push_back(use.link);
    }
  }
  std::sort(affected.begin(), affected.end());
  for (int index : affected) shared_[index].visited = false;
  return affected;
}

void Transfers::ShareBandwidth() {
  std::vector<int> rest = Affected();
  std::vector<int>& links = touched_links_;
  std::sort(links.begin(), links.end());
  links.erase(std::unique(links.begin(), links.end()), links.end());
  for (int link : links) capacity_[link] = bandwidth_[link];
  double level = 0;
  while (!rest.empty()) {
    for (int link : links) rising_[link] = 0;
    for (int index : rest) {
      for (const LinkUse& use : shared_[index].uses) rising_[use.link] += use.load;
    }
    double least = std::numeric_limits<double>::max();
    for (int link : links) {
      if (rising_[link] > 0) least = std::min(least, capacity_[link] / rising_[link]);
    }
    const double tight = std::max(least, 0.0) * (1 + kRounding);
    const auto is_tight = [&](const LinkUse& use) {
      return capacity_[use.link] <= tight * rising_[use.link];
    };
    // The tightest links, all that are alike at once.
    const auto frozen = std::stable_partition(rest.begin(), rest.end(), [&](int index) {
      const std::vector<LinkUse>& uses = shared_[index].uses;
      return std::none_of(uses.begin(), uses.end(), is_tight);
    });
    if (least <= 0) least = level;  // full with the last one, but for rounding
    CHECK_GT(least, 0);
    level = least;
    for (auto it = frozen; it != rest.end(); ++it) {
      SharedWay& path = shared_[*it];
      for (const LinkUse& use : path.uses) capacity_[use.link] -= least * use.load;
      if (path.rate == least) continue;
      // Whoever keeps its rate keeps its end, to the nanosecond.
      path.remaining -= path.rate * static_cast<double>(now_ - path.since) * 1e-9;
      path.remaining = std::max(0.0, path.remaining);
      path.since = now_;
      path.rate = least;
      path.end = now_ + TransferTime(path.remaining, BytesPerSecond(least)).value();
      ends_.emplace(path.end, *it);
    }
    rest.erase(frozen, rest.end());
  }
  links.clear();
}

// So that pending() is true only while something is under way.
void Transfers::DropStaleEnds() {
  while (!ends_.empty()) {
    const auto [time, path] = ends_.top();
    if (shared_[path].active && shared_[path].end == time) return;
    ends_.pop();
  }
}

void Transfers::Advance(std::vector<Arrival>* arrivals) {
  now_ = std::numeric_limits<int64_t>::max();
  if (!ends_.empty()) now_ = ends_.top().first;
  if (!starts_.empty()) now_ = std::min(now_, starts_.top().time);
  while (!ends_.empty() && ends_.top().first == now_) {
    const int path = ends_.top().second;
    ends_.pop();
    if (shared_[path].active && shared_[path].end == now_) Finish(path, arrivals);
  }
  while (!starts_.empty() && starts_.top().time == now_) {
    const Departure start = starts_.top();
    starts_.pop();
    Start(start.path, start.message, arrivals);
  }
  ShareBandwidth();
  DropStaleEnds();
}

}  // namespace pipelab
