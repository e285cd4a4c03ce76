// What one transfer gets of a cluster's connections where devices stand in a regular grid and all
// of its groups talk at one time: the costs of tensor, data and pipeline parallelism, without a
// table of all pairs.
//
//   // Pipeline x data x tensor: rank = (p D + d) T + t.
//   PathCost tensor = RingHop(cluster, {/*size=*/T, /*stride=*/1});
//   PathCost data = RingHop(cluster, {/*size=*/D, /*stride=*/T});
//   PathCost next = NeighbourHop(cluster, /*from=*/p * T * D, /*to=*/(p + 1) * T * D, T * D);
//   RingTime(data, D, Collective::kAllReduce, gradient_bytes)
//
// Groups of one kind are equal and start together, so a resource that several of them need is
// shared evenly; groups of other kinds are not looked at. A ring goes at the pace of its slowest
// hop. A level may say what rings reach inside of one of its units (ClusterLevel::ring): libraries
// run several rings over all links of a device.
#ifndef PIPELAB_PIPELINES_CLUSTER_GRID_LINKS_H_
#define PIPELAB_PIPELINES_CLUSTER_GRID_LINKS_H_

#include <cstdint>

#include "pipelines/cluster/cluster.h"
#include "pipelines/cost/collectives.h"
#include "pipelines/cost/network.h"

namespace pipelab {

// Devices first, first + stride, ...: `size` of them.
struct GridGroup {
  int64_t size = 1, stride = 1;
};

// Latency of a step, and bandwidth of a device in it. With one member nothing is sent: no latency,
// and bandwidth 0 (infinite). The group is within the cluster: CHECKed.
PathCost RingHop(const ClusterSpec& cluster, GridGroup group);

// `copies` consecutive devices from `from` on each send to those from `to` on, at one time.
PathCost NeighbourHop(const ClusterSpec& cluster, int64_t from, int64_t to, int64_t copies);

// Of `bytes` in all over d devices (collectives.h).
Nanoseconds RingTime(const PathCost& hop, int64_t d, Collective kind, Bytes bytes);

}  // namespace pipelab

#endif  // PIPELAB_PIPELINES_CLUSTER_GRID_LINKS_H_
