#include "pipelines/cost/collectives.h"

#include <algorithm>
#include <vector>

namespace pipelab {

namespace {

CollectiveCost CostOfRing(const RingRoute& ring, BytesPerSecond bandwidth, Collective kind,
                          Bytes bytes) {
  CollectiveCost cost;
  cost.ring = ring;
  cost.bandwidth = bandwidth;
  const int64_t ranks = cost.ring.ranks;
  const int64_t steps = (kind == Collective::kAllReduce ? 2 : 1) * (ranks - 1);
  if (steps <= 0) return cost;
  constexpr double kLongest = 0x1p61;  // the sum with a transfer's 2^62 does not overflow
  const double latency = static_cast<double>(cost.ring.step_latency.value()) * steps +
                         static_cast<double>(cost.ring.overhead.value());
  cost.latency = latency < kLongest ? cost.ring.overhead + cost.ring.step_latency * steps
                                    : Nanoseconds(static_cast<int64_t>(kLongest));
  cost.sent =
      static_cast<double>(bytes.value()) * static_cast<double>(steps) / static_cast<double>(ranks);
  if (kind == Collective::kAllReduce) cost.sent /= ring.all_reduce;
  return cost;
}

// The cost of a ring of hops that are all alike.
CollectiveCost CostOfHops(const CostTable& costs, int64_t ranks, Collective kind, Bytes bytes) {
  RingRoute ring;
  ring.ranks = ranks;
  ring.step_latency = costs.hop_latency;
  return CostOfRing(ring, costs.bandwidth, kind, bytes);
}

}  // namespace

CollectiveCost CostOfCollective(const CostTable& costs, Collective kind,
                                absl::Span<const int> devices, Bytes bytes) {
  if (costs.network.empty()) {
    return CostOfHops(costs, static_cast<int64_t>(devices.size()), kind, bytes);
  }
  const RingRoute ring = RingOf(costs.network, devices);
  return CostOfRing(ring, BandwidthOf(costs.network, ring.uses), kind, bytes);
}

CollectiveCost CostOfExpertCollective(const CostTable& costs, Collective kind,
                                      absl::Span<const int> devices, int copies, Bytes bytes) {
  const auto& rings = costs.network.expert_rings;
  const auto ring = rings.find(std::vector<int>(devices.begin(), devices.end()));
  if (ring != rings.end()) {
    return CostOfRing(ring->second, BandwidthOf(costs.network, ring->second.uses), kind, bytes);
  }
  const int64_t ranks = std::max<int64_t>(1, static_cast<int64_t>(devices.size()) / copies);
  return CostOfHops(costs, ranks, kind, bytes);
}

Nanoseconds CollectiveTime(const CostTable& costs, Collective kind, absl::Span<const int> devices,
                           Bytes bytes) {
  return CostOfCollective(costs, kind, devices, bytes).Time();
}

}  // namespace pipelab
