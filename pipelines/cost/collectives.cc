#include "pipelines/cost/collectives.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <numeric>
#include <vector>

namespace pipelab {
namespace {

// Latency, and what one of the ring's transfers gets of the bandwidth.
PathCost HopCost(const Network& network, int from, int to,
                 const std::vector<int>& transfers_on_link) {
  PathCost cost = CostOfPath(network, from, to);
  for (int id : network.Path(from, to)) {
    const double share = network.links[id].bandwidth.value() / transfers_on_link[id];
    if (share > 0 && share < cost.bandwidth.value()) cost.bandwidth = BytesPerSecond(share);
  }
  return cost;
}

// What goes around a ring; a step takes as long as its slowest hop.
class Ring {
 public:
  Ring(Collective kind, int64_t devices, Bytes bytes)
      : steps_((kind == Collective::kAllReduce ? 2 : 1) * (devices - 1)),
        sent_(static_cast<double>(bytes.value()) * static_cast<double>(steps_) /
              static_cast<double>(std::max<int64_t>(1, devices))) {}

  bool sends() const { return steps_ > 0; }
  Nanoseconds Time(const PathCost& hop) const {
    Nanoseconds time = hop.latency * steps_;
    if (hop.bandwidth.value() > 0) {
      time += Nanoseconds(std::llround(sent_ * 1e9 / hop.bandwidth.value()));
    }
    return time;
  }

 private:
  int64_t steps_;
  double sent_;  // by each device
};

Nanoseconds TimeOn(const Network& network, const Ring& ring, absl::Span<const int> devices) {
  const size_t d = devices.size();
  std::vector<int> transfers_on_link(network.links.size());
  for (size_t hop = 0; hop < d; ++hop) {
    for (int id : network.Path(devices[hop], devices[(hop + 1) % d])) ++transfers_on_link[id];
  }
  Nanoseconds longest;
  for (size_t hop = 0; hop < d; ++hop) {
    const PathCost cost = HopCost(network, devices[hop], devices[(hop + 1) % d], transfers_on_link);
    longest = std::max(longest, ring.Time(cost));
  }
  return longest;
}

}  // namespace

Nanoseconds CollectiveTime(const CostTable& costs, Collective kind, absl::Span<const int> devices,
                           Bytes bytes) {
  const Ring ring(kind, static_cast<int64_t>(devices.size()), bytes);
  if (!ring.sends()) return Nanoseconds(0);
  if (costs.network.empty()) return ring.Time({costs.hop_latency, costs.bandwidth});
  return TimeOn(costs.network, ring, devices);
}

Nanoseconds CollectiveTime(const Network& network, Collective kind, Bytes bytes) {
  const Ring ring(kind, network.num_devices, bytes);
  if (!ring.sends()) return Nanoseconds(0);
  std::vector<int> devices(network.num_devices);
  std::iota(devices.begin(), devices.end(), 0);
  return TimeOn(network, ring, devices);
}

}  // namespace pipelab
