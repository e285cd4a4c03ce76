#include "pipelines/sim/transfers.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "glog/logging.h"

namespace pipelab {

Transfers::Transfers(const Program& program, const CostTable& costs)
    : program_(program), costs_(costs), ways_(program.schedule.num_devices()) {
  if (!costs.network.empty()) FindSharedWays();
}

void Transfers::FindSharedWays() {
  const Network& network = costs_.network;
  const size_t devices = network.num_devices;
  std::vector<char> used(devices * devices, 0);
  for (const Message& m : program_.messages) used[m.from_device * devices + m.to_device] = 1;
  const auto finite = [&](int link) { return network.links[link].bandwidth.value() > 0; };
  std::vector<int> users(network.links.size());
  for (size_t pair = 0; pair < used.size(); ++pair) {
    if (used[pair] == 0) continue;
    for (int link : network.paths[pair]) ++users[link];
  }
  shared_of_pair_.assign(used.size(), -1);
  for (size_t pair = 0; pair < used.size(); ++pair) {
    const std::vector<int>& path = network.paths[pair];
    const bool shares = std::any_of(path.begin(), path.end(),
                                    [&](int link) { return finite(link) && users[link] > 1; });
    if (used[pair] == 0 || !shares) continue;
    shared_of_pair_[pair] = static_cast<int>(shared_.size());
    SharedWay& way = shared_.emplace_back();
    std::copy_if(path.begin(), path.end(), std::back_inserter(way.links), finite);
    way.latency =
        costs_.PathBetween(static_cast<int>(pair / devices), static_cast<int>(pair % devices))
            .latency.value();
  }
  active_ways_.resize(network.links.size());
  capacity_.resize(network.links.size());
  unfrozen_.resize(network.links.size());
}

Transfers::Way& Transfers::WayOf(int from, int to) {
  std::vector<Way>& ways = ways_[from];
  auto way = ways.begin();
  while (way != ways.end() && way->to != to) ++way;
  if (way != ways.end()) return *way;
  Way& added = ways.emplace_back();
  added.to = to;
  added.cost = costs_.PathBetween(from, to);
  if (!shared_of_pair_.empty()) {
    added.shared = shared_of_pair_[static_cast<size_t>(from) * costs_.network.num_devices + to];
  }
  return added;
}

Arrival Transfers::Send(int32_t message, int64_t bytes, int64_t time) {
  const Message& m = program_.messages[message];
  Way& way = WayOf(m.from_device, m.to_device);
  Arrival a;
  a.message = message;
  if (way.shared >= 0) {
    CHECK_GE(time, now_);
    starts_.push({time, sequence_++, way.shared, {message, bytes}});
    return a;
  }
  a.begin = std::max(time, way.free_at);
  way.free_at = a.begin + way.cost.TransferTime(Bytes(bytes)).value();
  a.arrival = way.free_at + way.cost.latency.value();
  return a;
}

void Transfers::Begin(int index, const Waiting& message, std::vector<Arrival>* arrivals) {
  SharedWay& way = shared_[index];
  if (way.active) {
    way.queue.push_back(message);
    return;
  }
  way.transfer = {message.message, now_, Arrival::kUnknown};
  if (message.bytes == 0) {
    way.transfer.arrival = now_ + way.latency;
    arrivals->push_back(way.transfer);
    return;
  }
  way.active = true;
  way.remaining = static_cast<double>(message.bytes);
  way.rate = 0;
  way.since = now_;
  way.end = std::numeric_limits<int64_t>::max();
  for (int link : way.links) {
    active_ways_[link].push_back(index);
    touched_links_.push_back(link);
  }
}

void Transfers::Finish(int index, std::vector<Arrival>* arrivals) {
  SharedWay& way = shared_[index];
  way.transfer.arrival = now_ + way.latency;
  arrivals->push_back(way.transfer);
  way.active = false;
  for (int link : way.links) {
    std::vector<int>& active = active_ways_[link];
    active.erase(std::find(active.begin(), active.end(), index));
    touched_links_.push_back(link);
  }
  while (!way.active && !way.queue.empty()) {
    const Waiting next = way.queue.front();
    way.queue.pop_front();
    Begin(index, next, arrivals);
  }
}

// Active ways that the touched links reach by way of links that active ways have in common.
std::vector<int> Transfers::Affected() {
  std::vector<int> affected;
  for (size_t at = 0; at < touched_links_.size(); ++at) {
    for (int index : active_ways_[touched_links_[at]]) {
      SharedWay& way = shared_[index];
      if (way.visited) continue;
      way.visited = true;
      affected.push_back(index);
      touched_links_.insert(touched_links_.end(), way.links.begin(), way.links.end());
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
  for (int link : links) {
    capacity_[link] = costs_.network.links[link].bandwidth.value();
    unfrozen_[link] = static_cast<int>(active_ways_[link].size());
  }
  while (!rest.empty()) {
    int tightest = -1;
    double least = 0;
    for (int link : links) {
      if (unfrozen_[link] == 0) continue;
      const double share = std::max(0.0, capacity_[link]) / unfrozen_[link];
      if (tightest >= 0 && share >= least) continue;
      tightest = link;
      least = share;
    }
    CHECK_GT(least, 0);
    const auto frozen = std::stable_partition(rest.begin(), rest.end(), [&](int index) {
      const std::vector<int>& path = shared_[index].links;
      return std::find(path.begin(), path.end(), tightest) == path.end();
    });
    for (auto it = frozen; it != rest.end(); ++it) {
      SharedWay& way = shared_[*it];
      for (int link : way.links) {
        capacity_[link] -= least;
        --unfrozen_[link];
      }
      if (way.rate == least) continue;
      // Whoever keeps its rate keeps its end, to the nanosecond.
      way.remaining -= way.rate * static_cast<double>(now_ - way.since) * 1e-9;
      way.remaining = std::max(0.0, way.remaining);
      way.since = now_;
      way.rate = least;
      way.end = now_ + std::llround(way.remaining * 1e9 / least);
      ends_.emplace(way.end, *it);
    }
    rest.erase(frozen, rest.end());
  }
  links.clear();
}

// So that pending() is true only while something is under way.
void Transfers::DropStaleEnds() {
  while (!ends_.empty()) {
    const auto [time, way] = ends_.top();
    if (shared_[way].active && shared_[way].end == time) return;
    ends_.pop();
  }
}

void Transfers::Advance(std::vector<Arrival>* arrivals) {
  now_ = std::numeric_limits<int64_t>::max();
  if (!ends_.empty()) now_ = ends_.top().first;
  if (!starts_.empty()) now_ = std::min(now_, starts_.top().time);
  while (!ends_.empty() && ends_.top().first == now_) {
    const int way = ends_.top().second;
    ends_.pop();
    if (shared_[way].active && shared_[way].end == now_) Finish(way, arrivals);
  }
  while (!starts_.empty() && starts_.top().time == now_) {
    const Start start = starts_.top();
    starts_.pop();
    Begin(start.way, start.message, arrivals);
  }
  ShareBandwidth();
  DropStaleEnds();
}

}  // namespace pipelab
