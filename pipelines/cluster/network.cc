#include "pipelines/cluster/network.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/container/inlined_vector.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace pipelab {
namespace {

int AddLink(Network* network, Link link, const std::string& name) {
  link.name = name;
  network->links.push_back(std::move(link));
  return static_cast<int>(network->links.size()) - 1;
}

// What is wrong with them; empty: nothing.
std::string FaultOf(const Network& network, const std::vector<LinkUse>& uses) {
  absl::InlinedVector<int, 8> links;
  for (const LinkUse& use : uses) {
    if (use.link < 0 || use.link >= static_cast<int>(network.links.size())) {
      return absl::StrCat(" has an unknown link: ", use.link);
    }
    if (!(use.load > 0 && std::isfinite(use.load))) {
      return absl::StrCat(" uses link ", use.link, " (", network.links[use.link].name,
                          ") with a load that is not above 0: ", use.load);
    }
    links.push_back(use.link);
  }
  std::sort(links.begin(), links.end());
  const auto twice = std::adjacent_find(links.begin(), links.end());
  return twice == links.end() ? "" : absl::StrCat(" takes a link twice: ", *twice);
}

std::string FaultOf(const Network& network, const std::vector<int>& devices,
                    const RingRoute& ring) {
  for (size_t i = 0; i < devices.size(); ++i) {
    const bool known = devices[i] >= 0 && devices[i] < network.num_devices;
    if (!known || (i > 0 && devices[i] <= devices[i - 1])) {
      return absl::StrCat(" must have devices from 0 to ", network.num_devices - 1,
                          ", each above the one before");
    }
  }
  if (ring.ranks < 1) return absl::StrCat(" has ", ring.ranks, " ranks");
  if (ring.step_latency < Nanoseconds(0) || ring.overhead < Nanoseconds(0)) {
    return " has a negative latency";
  }
  return FaultOf(network, ring.uses);
}

}  // namespace

absl::Status CheckNetwork(const Network& network) {
  const int n = network.num_devices, num_links = static_cast<int>(network.links.size());
  if (n < 0 || network.routes.size() != static_cast<size_t>(n) * n) {
    return absl::InvalidArgumentError(absl::StrCat("a network of ", n, " devices has ",
                                                   network.routes.size(),
                                                   " routes instead of one per pair"));
  }
  for (int i = 0; i < num_links; ++i) {
    const Link& link = network.links[i];
    if (link.latency >= Nanoseconds(0) && link.bandwidth >= BytesPerSecond(0) &&
        std::isfinite(link.bandwidth.value())) {
      continue;
    }
    return absl::InvalidArgumentError(
        absl::StrCat("link ", i, " (", link.name,
                     ") has a latency or a bandwidth that is negative or not a number"));
  }
  for (int from = 0; from < n; ++from) {
    for (int to = 0; to < n; ++to) {
      const Route& route = network.RouteOf(from, to);
      if (route.latency >= Nanoseconds(0) && route.uses.empty()) continue;  // most of millions
      const std::string fault =
          route.latency < Nanoseconds(0) ? " has a negative latency" : FaultOf(network, route.uses);
      if (fault.empty()) continue;
      return absl::InvalidArgumentError(
          absl::StrCat("the route from device ", from, " to device ", to, fault));
    }
  }
  for (const auto* rings : {&network.rings, &network.expert_rings}) {
    for (const auto& [devices, ring] : *rings) {
      const std::string fault = FaultOf(network, devices, ring);
      if (fault.empty()) continue;
      return absl::InvalidArgumentError(
          absl::StrCat("the ring of devices ", absl::StrJoin(devices, ","), fault));
    }
  }
  return absl::OkStatus();
}

Network UnconnectedNetwork(int num_devices) {
  Network network;
  network.num_devices = num_devices;
  network.routes.resize(static_cast<size_t>(num_devices) * num_devices);
  return network;
}

Network PrivateLinks(int num_devices, const Link& link) {
  Network network = UnconnectedNetwork(num_devices);
  for (int from = 0; from < num_devices; ++from) {
    for (int to = 0; to < num_devices; ++to) {
      if (from == to) continue;
      network.RouteOf(from, to).uses = {AddLink(&network, link, absl::StrCat(from, " to ", to))};
    }
  }
  return network;
}

Network SharedPorts(int num_devices, const Link& out, const Link& in) {
  Network network = UnconnectedNetwork(num_devices);
  for (int d = 0; d < num_devices; ++d) {
    AddLink(&network, out, absl::StrCat("out of ", d));
    AddLink(&network, in, absl::StrCat("into ", d));
  }
  for (int from = 0; from < num_devices; ++from) {
    for (int to = 0; to < num_devices; ++to) {
      if (from != to) network.RouteOf(from, to).uses = {2 * from, 2 * to + 1};
    }
  }
  return network;
}

Network SharedUplinks(int num_devices, int devices_per_node, const Link& inside,
                      const Link& uplink) {
  Network network = PrivateLinks(num_devices, inside);
  const int nodes = (num_devices + devices_per_node - 1) / devices_per_node;
  const int first = static_cast<int>(network.links.size());
  for (int node = 0; node < nodes; ++node) {
    AddLink(&network, uplink, absl::StrCat("up from node ", node));
    AddLink(&network, uplink, absl::StrCat("down to node ", node));
  }
  for (int from = 0; from < num_devices; ++from) {
    for (int to = 0; to < num_devices; ++to) {
      const int a = from / devices_per_node, b = to / devices_per_node;
      if (a != b) network.RouteOf(from, to).uses = {first + 2 * a, first + 2 * b + 1};
    }
  }
  return network;
}

RingRoute RingOf(const Network& network, absl::Span<const int> devices) {
  std::vector<int> key(devices.begin(), devices.end());
  std::sort(key.begin(), key.end());
  const auto given = network.rings.find(key);
  if (given != network.rings.end()) return given->second;
  RingRoute ring;
  ring.ranks = static_cast<int64_t>(devices.size());
  if (ring.ranks < 2) return ring;
  std::map<int, double> load_of_link;
  for (size_t hop = 0; hop < devices.size(); ++hop) {
    const int from = devices[hop], to = devices[(hop + 1) % devices.size()];
    ring.step_latency = std::max(ring.step_latency, CostOfPath(network, from, to).latency);
    for (const LinkUse& use : network.RouteOf(from, to).uses) load_of_link[use.link] += use.load;
  }
  for (const auto& [link, load] : load_of_link) ring.uses.emplace_back(link, load);
  return ring;
}

BytesPerSecond BandwidthOf(const Network& network, absl::Span<const LinkUse> uses) {
  double least = 0;
  for (const LinkUse& use : uses) {
    const double bandwidth = network.links[use.link].bandwidth.value() / use.load;
    if (bandwidth > 0 && (least == 0 || bandwidth < least)) least = bandwidth;
  }
  return BytesPerSecond(least);
}

Nanoseconds TransferTime(double bytes, BytesPerSecond bandwidth) {
  if (bandwidth.value() == 0) return Nanoseconds(0);
  constexpr double kLongest = 0x1p62;
  return Nanoseconds(std::llround(std::min(kLongest, bytes * 1e9 / bandwidth.value())));
}

PathCost CostOfPath(const Network& network, int from, int to) {
  const Route& route = network.RouteOf(from, to);
  PathCost cost = {route.latency, BandwidthOf(network, route.uses)};
  for (const LinkUse& use : route.uses) cost.latency += network.links[use.link].latency;
  return cost;
}

}  // namespace pipelab
