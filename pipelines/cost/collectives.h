// Time of collective operations by rings, on the links of a cost table.
//
//   Nanoseconds t = CollectiveTime(costs, Collective::kAllReduce, {0, 4, 8}, gradient_bytes);
//
// The ring goes through the devices in the order given and back to the first; in each step every
// rank sends 1/d of the bytes to its neighbour. Steps: d - 1 for a reduce-scatter and for an
// all-gather, 2 (d - 1) for an all-reduce (Thakur, Rabenseifner and Gropp 2005, section 4), so an
// all-reduce takes
//   overhead + 2 (d - 1) latency + 2 (d - 1) / d bytes / bandwidth,
// with the latency of the slowest hop, and the bandwidth that the hops get where they share links:
// the least of bandwidth / load (RingOf in network.h, which also has rings that a network states).
// Other transfers at the same time are not looked at: the simulator does that
// (sim/collective_timeline.h).
//
// `bytes` is the whole tensor, that is, before a reduce-scatter and after an all-gather. Memory:
// the ring works in place.
#ifndef PIPELAB_PIPELINES_COST_COLLECTIVES_H_
#define PIPELAB_PIPELINES_COST_COLLECTIVES_H_

#include "absl/types/span.h"
#include "models/graph/collective.h"  // IWYU pragma: export
#include "pipelines/cluster/network.h"
#include "pipelines/cost/cost_table.h"
#include "tools/base/units.h"

namespace pipelab {

// The parts of a collective.
struct CollectiveCost {
  RingRoute ring;
  Nanoseconds latency;          // before any byte moves: overhead and steps
  double sent = 0;              // bytes, by each rank
  BytesPerSecond bandwidth{0};  // of a rank, with the ring's links to itself; 0: infinite

  Nanoseconds Time() const { return latency + TransferTime(sent, bandwidth); }
};

CollectiveCost CostOfCollective(const CostTable& costs, Collective kind,
                                absl::Span<const int> devices, Bytes bytes);

// The same among those of the devices that have the same experts, one of each `copies`
// (network.expert_rings).
CollectiveCost CostOfExpertCollective(const CostTable& costs, Collective kind,
                                      absl::Span<const int> devices, int copies, Bytes bytes);

// `devices` are different from each other; with one rank nothing is sent and the time is 0.
Nanoseconds CollectiveTime(const CostTable& costs, Collective kind, absl::Span<const int> devices,
                           Bytes bytes);

}  // namespace pipelab

#endif  // PIPELAB_PIPELINES_COST_COLLECTIVES_H_
