// What messages travel over: links, and the links on the way from one device to another.
//
//   Network net = SharedUplinks(/*num_devices=*/8, /*devices_per_node=*/4, nvlink, uplink);
//   costs.network = net;                                 // cost/cost_table.h
//   Network own;                                         // by hand: two devices behind one port
//   own.num_devices = 3;
//   own.links = {{"port", Microseconds(1), BytesPerSecond(12.5e9)}};
//   own.paths.resize(9);
//   own.Path(0, 2) = own.Path(1, 2) = {0};
//
// A link is a resource of one direction: transfers that are on it at one time share its bandwidth
// (pipelines/sim/simulate.h says how). A path's latency is the sum of its links' latencies, its
// bandwidth the least of theirs. An empty path takes no time.
#ifndef PIPELAB_PIPELINES_COST_NETWORK_H_
#define PIPELAB_PIPELINES_COST_NETWORK_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "tools/base/units.h"

namespace pipelab {

struct Link {
  std::string name;  // for messages to the user
  Nanoseconds latency;
  BytesPerSecond bandwidth{0};  // 0: infinite
};

struct Network {
  int num_devices = 0;
  std::vector<Link> links;
  // [from * num_devices + to] The ids of the links on the way, each at most once.
  std::vector<std::vector<int>> paths;

  bool empty() const { return num_devices == 0; }
  std::vector<int>& Path(int from, int to) { return paths[from * num_devices + to]; }
  const std::vector<int>& Path(int from, int to) const { return paths[from * num_devices + to]; }
};

// InvalidArgument naming the link or the pair of devices that is wrong.
absl::Status CheckNetwork(const Network& network);

// Every ordered pair of devices has a link of its own.
Network PrivateLinks(int num_devices, const Link& link);

// Every device has one port out and one port in, which all its transfers share.
Network SharedPorts(int num_devices, const Link& out, const Link& in);

// Nodes of consecutive devices: inside a node each ordered pair has a link of its own; between
// nodes a transfer takes the uplink of the one and the downlink of the other, which the devices of
// a node share. Both are `uplink`.
Network SharedUplinks(int num_devices, int devices_per_node, const Link& inside,
                      const Link& uplink);

// Latency and bandwidth of a path that nothing else uses. Bandwidth 0: infinite.
struct PathCost {
  Nanoseconds latency;
  BytesPerSecond bandwidth{0};

  // Without the latency: from the first byte's begin to the last byte's end.
  Nanoseconds TransferTime(Bytes bytes) const;
};
PathCost CostOfPath(const Network& network, int from, int to);

}  // namespace pipelab

#endif  // PIPELAB_PIPELINES_COST_NETWORK_H_
