// What messages and collectives travel over: links, the routes between devices, and rings.
//
//   Network net = SharedUplinks(/*num_devices=*/8, /*devices_per_node=*/4, nvlink, uplink);
//   costs.network = net;                                 // cost/cost_table.h
//   Network own = UnconnectedNetwork(3);                 // by hand: two devices behind one port
//   own.links = {{"port", Microseconds(1), BytesPerSecond(12.5e9)}};
//   own.RouteOf(0, 2).uses = own.RouteOf(1, 2).uses = {0};
//   own.rings[{0, 1}].ranks = 64;
//   own.rings[{0, 1}].uses = {{/*link=*/0, /*load=*/8.0}};
//
// A link is a resource of one direction: messages and collectives that are on it at one time share
// its bandwidth (pipelines/sim/transfers.h says how). A load is the bytes on the link for each byte
// that the program's message says: a device of the program may stand for many ranks. Eight that
// each send an eighth of a message over one network card use it with load 1; four copies that each
// send all of it, with load 4.
//
// A route's latency is its own and the sum of its links'; its bandwidth is the least of
// bandwidth / load. A route without links takes its latency alone.
#ifndef PIPELAB_PIPELINES_CLUSTER_NETWORK_H_
#define PIPELAB_PIPELINES_CLUSTER_NETWORK_H_

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "tools/base/units.h"

namespace pipelab {

struct Link {
  std::string name;  // for messages to the user
  Nanoseconds latency;
  BytesPerSecond bandwidth{0};  // 0: infinite
};

struct LinkUse {
  LinkUse() = default;
  LinkUse(int link, double load = 1) : link(link), load(load) {}  // NOLINT: {0, 3} is a route

  int link = 0;
  double load = 1;  // above 0

  friend bool operator==(const LinkUse& a, const LinkUse& b) {
    return a.link == b.link && a.load == b.load;
  }
};

// From one device to another.
struct Route {
  Nanoseconds latency;        // on top of the links'
  std::vector<LinkUse> uses;  // each link at most once
};

// To the nearest nanosecond, and 2^62 of them at most; at a bandwidth of 0, which is infinite, 0.
Nanoseconds TransferTime(double bytes, BytesPerSecond bandwidth);

// Latency and bandwidth of a route that nothing else uses. Bandwidth 0: infinite.
struct PathCost {
  Nanoseconds latency;
  BytesPerSecond bandwidth{0};
  double all_reduce = 1;  // of a ring: what an all-reduce gets is so many times as much

  // Without the latency: from the first byte's begin to the last byte's end.
  Nanoseconds TransferTime(Bytes bytes) const {
    return pipelab::TransferTime(static_cast<double>(bytes.value()), bandwidth);
  }
};

// The ring of a collective's members. A collective of n bytes takes s = ranks - 1 steps (an
// all-reduce twice as many), in which each rank sends n s / ranks.
struct RingRoute {
  int64_t ranks = 1;
  Nanoseconds step_latency;   // all links included
  Nanoseconds overhead;       // once a collective
  std::vector<LinkUse> uses;  // loads are for each byte that one rank sends
  double all_reduce = 1;      // of its bytes an all-reduce sends one in so many
};

struct Network {
  int num_devices = 0;
  std::vector<Link> links;
  std::vector<Route> routes;  // [from * num_devices + to]
  // By the devices that take part, ascending. Rings of other devices follow from the routes
  // between neighbours (RingOf).
  std::map<std::vector<int>, RingRoute> rings;
  // The rings of those of them that have the same experts, for what they alone sum
  // (Program::expert_copies).
  std::map<std::vector<int>, RingRoute> expert_rings;

  bool empty() const { return num_devices == 0; }
  Route& RouteOf(int from, int to) { return routes[from * num_devices + to]; }
  const Route& RouteOf(int from, int to) const { return routes[from * num_devices + to]; }
};

// InvalidArgument naming the link, the pair of devices or the ring that is wrong.
absl::Status CheckNetwork(const Network& network);

// No links, and routes that take no time.
Network UnconnectedNetwork(int num_devices);

// Every ordered pair of devices has a link of its own.
Network PrivateLinks(int num_devices, const Link& link);

// Every device has one port out and one port in, which all its transfers share.
Network SharedPorts(int num_devices, const Link& out, const Link& in);

// Nodes of consecutive devices: inside a node each ordered pair has a link of its own; between
// nodes a transfer takes the uplink of the one and the downlink of the other, which the devices of
// a node share. Both are `uplink`.
Network SharedUplinks(int num_devices, int devices_per_node, const Link& inside,
                      const Link& uplink);

// The network's ring of these devices, which goes through them in the order given. Else the one
// whose step takes the latency of its slowest hop, with the links of all hops.
RingRoute RingOf(const Network& network, absl::Span<const int> devices);

// What a transfer gets that has these links to itself. 0: infinite.
BytesPerSecond BandwidthOf(const Network& network, absl::Span<const LinkUse> uses);

PathCost CostOfPath(const Network& network, int from, int to);

}  // namespace pipelab

#endif  // PIPELAB_PIPELINES_CLUSTER_NETWORK_H_
