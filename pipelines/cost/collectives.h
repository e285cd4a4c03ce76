// Time of collective operations by rings, on the links of a cost table.
//
//   Nanoseconds t = CollectiveTime(costs, Collective::kAllReduce, {0, 4, 8}, gradient_bytes);
//
// The ring goes through the devices in the order given and back to the first; in each step every
// device sends 1/d of the bytes to its neighbour. Steps: d - 1 for a reduce-scatter and for an
// all-gather, 2 (d - 1) for an all-reduce (Thakur, Rabenseifner and Gropp 2005, section 4). A step
// takes the latency and the transfer of its slowest hop, so an all-reduce takes
//   2 (d - 1) latency + 2 (d - 1) / d bytes / bandwidth.
// Hops of one ring that take the same link share its bandwidth; other transfers at the same time
// are not looked at.
//
// An instruction of the simulator that is a collective asks for its time here and then waits for
// the other members (Meet in sim/simulate.cc), as kReduce does. `bytes` is the whole tensor, that
// is, before a reduce-scatter and after an all-gather. Memory: the ring works in place.
#ifndef PIPELAB_PIPELINES_COST_COLLECTIVES_H_
#define PIPELAB_PIPELINES_COST_COLLECTIVES_H_

#include "absl/types/span.h"
#include "models/graph/collective.h"  // IWYU pragma: export
#include "pipelines/cost/cost_table.h"
#include "tools/base/units.h"

namespace pipelab {

// `devices` are different from each other; with one of them nothing is sent and the time is 0.
Nanoseconds CollectiveTime(const CostTable& costs, Collective kind, absl::Span<const int> devices,
                           Bytes bytes);

}  // namespace pipelab

#endif  // PIPELAB_PIPELINES_COST_COLLECTIVES_H_
