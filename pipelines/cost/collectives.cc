#include "pipelines/cost/collectives.h"

#include <algorithm>
#include <cmath>
#include <vector>

namespace pipelab {
namespace {

// Latency, and what one of the ring's transfers gets of the bandwidth.
PathCost HopCost(const CostTable& costs, absl::Span<const int> ring, size_t hop,
                 const std::vector<int>& transfers_on_link) {
  const int from = ring[hop], to = ring[(hop + 1) % ring.size()];
  PathCost cost = costs.PathBetween(from, to);
  if (costs.network.empty()) return cost;
  for (int id : costs.network.Path(from, to)) {
    const double share = costs.network.links[id].bandwidth.value() / transfers_on_link[id];
    if (share > 0 && share < cost.bandwidth.value()) cost.bandwidth = BytesPerSecond(share);
  }
  return cost;
}

}  // namespace

Nanoseconds CollectiveTime(const CostTable& costs, Collective kind, absl::Span<const int> devices,
                           Bytes bytes) {
  const int64_t d = static_cast<int64_t>(devices.size());
  const int64_t steps = (kind == Collective::kAllReduce ? 2 : 1) * (d - 1);
  if (steps <= 0) return Nanoseconds(0);
  std::vector<int> transfers_on_link(costs.network.links.size());
  for (int64_t hop = 0; hop < d && !costs.network.empty(); ++hop) {
    const auto& path = costs.network.Path(devices[hop], devices[(hop + 1) % d]);
    for (int id : path) ++transfers_on_link[id];
  }
  const double sent = static_cast<double>(bytes.value()) * static_cast<double>(steps) /
                      static_cast<double>(d);  // by each device
  Nanoseconds longest;
  for (int64_t hop = 0; hop < d; ++hop) {
    const PathCost cost = HopCost(costs, devices, hop, transfers_on_link);
    Nanoseconds time = cost.latency * steps;
    if (cost.bandwidth.value() > 0) {
      time += Nanoseconds(std::llround(sent * 1e9 / cost.bandwidth.value()));
    }
    longest = std::max(longest, time);
  }
  return longest;
}

}  // namespace pipelab
