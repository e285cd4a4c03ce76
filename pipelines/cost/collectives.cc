#include "pipelines/cost/collectives.h"

#include "pipelines/cluster/rank_network.h"

namespace pipelab {

CollectiveCost CostOfCollective(const CostTable& costs, Collective kind,
                                absl::Span<const int> devices, Bytes bytes) {
  CollectiveCost cost;
  if (costs.network.empty()) {
    cost.ring.ranks = static_cast<int64_t>(devices.size());
    cost.ring.step_latency = costs.hop_latency;
    cost.bandwidth = costs.bandwidth;
  } else {
    cost.ring = RingOf(costs.network, devices);
    cost.bandwidth = BandwidthOf(costs.network, cost.ring.uses);
  }
  const int64_t ranks = cost.ring.ranks;
  const int64_t steps = (kind == Collective::kAllReduce ? 2 : 1) * (ranks - 1);
  if (steps <= 0) return cost;
  constexpr double kLongest = 0x1p61;  // the sum with a transfer's 2^62 does not overflow
  const double latency = static_cast<double>(cost.ring.step_latency.value()) * steps +
                         static_cast<double>(cost.ring.overhead.value());
  cost.latency = latency < kLongest ? cost.ring.overhead + cost.ring.step_latency * steps
                                    : Nanoseconds(static_cast<int64_t>(kLongest));
  if (kind != Collective::kAllGather && cost.ring.groups > 1) {
    const Bytes part(bytes.value() / ranks);
    cost.latency += cost.ring.overhead +
                    RingTime(cost.ring.across, cost.ring.groups, Collective::kAllReduce, part);
  }
  cost.sent =
      static_cast<double>(bytes.value()) * static_cast<double>(steps) / static_cast<double>(ranks);
  return cost;
}

Nanoseconds CollectiveTime(const CostTable& costs, Collective kind, absl::Span<const int> devices,
                           Bytes bytes) {
  return CostOfCollective(costs, kind, devices, bytes).Time();
}

}  // namespace pipelab
