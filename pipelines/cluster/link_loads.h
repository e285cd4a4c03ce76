// What transfers and rings load the links of a cluster with. Private to rank_network.
//
//   Loads loads;
//   const Nanoseconds latency = AddCrossing(cluster, {/*from=*/0, /*to=*/9}, &loads);
//   BandwidthUnder(cluster, loads);            // what each of such transfers gets
//   LoadsOfRing(cluster, {{0, 8, 16}, 1}).step_latency;
#ifndef PIPELAB_PIPELINES_CLUSTER_LINK_LOADS_H_
#define PIPELAB_PIPELINES_CLUSTER_LINK_LOADS_H_

#include <cstdint>
#include <tuple>
#include <vector>

#include "absl/container/btree_map.h"
#include "pipelines/cluster/cluster.h"
#include "tools/base/units.h"

namespace pipelab {

// Devices of a unit of the level below.
int64_t DevicesBelow(const ClusterSpec& cluster, int level);
// The innermost level that holds both ranks.
int LevelOf(const ClusterSpec& cluster, int64_t a, int64_t b);
bool IsGrid(const ClusterLevel& level);  // a mesh or torus

enum class LinkKind : uint8_t { kPair, kOut, kIn, kThrough };

// A link of the cluster: between two ends (ranks, or units of the level below), or the port of one.
struct LinkKey {
  LinkKind kind = LinkKind::kPair;
  int level = 0;
  int64_t a = 0, b = 0;

  friend bool operator<(const LinkKey& x, const LinkKey& y) {
    return std::tie(x.kind, x.level, x.a, x.b) < std::tie(y.kind, y.level, y.a, y.b);
  }
};

using Loads = absl::btree_map<LinkKey, double>;

// Transfers like the one between ranks `from` and `to`, at one time.
struct Crossing {
  int64_t from = 0, to = 0;
  double of_unit = 1;   // that leave a unit of the level below, and enter one
  double of_level = 1;  // within a unit of the level
};

// Its links, each with what a byte of one of the transfers loads it with; the latency.
Nanoseconds AddCrossing(const ClusterSpec& cluster, const Crossing& crossing, Loads* loads);

double BandwidthOf(const ClusterSpec& cluster, const LinkKey& key);  // bytes a second
// What a transfer gets of links with such loads. 0: infinite.
BytesPerSecond BandwidthUnder(const ClusterSpec& cluster, const Loads& loads);

// A ring through these ranks, ascending, and so many like it at one time.
struct RingCrossing {
  std::vector<int64_t> ranks;
  int64_t rings = 1;
};

struct RingLoads {
  Nanoseconds step_latency;
  Loads loads;            // for a byte that a rank sends
  double all_reduce = 1;  // one is so many times as fast as the ring
};

RingLoads LoadsOfRing(const ClusterSpec& cluster, const RingCrossing& ring);
// Each of these ranks sends an equal part to each other one at one time, in so many groups like it:
// the loads are for each byte that a rank has for all of them, itself too.
RingLoads LoadsOfExchange(const ClusterSpec& cluster, const RingCrossing& group);

}  // namespace pipelab

#endif  // PIPELAB_PIPELINES_CLUSTER_LINK_LOADS_H_
