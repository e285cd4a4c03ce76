#include "pipelines/cost/network.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"

namespace pipelab {
namespace {

Network Unconnected(int num_devices) {
  Network network;
  network.num_devices = num_devices;
  network.paths.resize(static_cast<size_t>(num_devices) * num_devices);
  return network;
}

int AddLink(Network* network, Link link, const std::string& name) {
  link.name = name;
  network->links.push_back(std::move(link));
  return static_cast<int>(network->links.size()) - 1;
}

}  // namespace

absl::Status CheckNetwork(const Network& network) {
  const int n = network.num_devices, num_links = static_cast<int>(network.links.size());
  if (n < 0 || network.paths.size() != static_cast<size_t>(n) * n) {
    return absl::InvalidArgumentError(absl::StrCat(
        "a network of ", n, " devices has ", network.paths.size(), " paths instead of one a pair"));
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
      const std::vector<int>& path = network.Path(from, to);
      for (size_t i = 0; i < path.size(); ++i) {
        const bool known = path[i] >= 0 && path[i] < num_links;
        if (known && std::count(path.begin(), path.end(), path[i]) == 1) continue;
        return absl::InvalidArgumentError(
            absl::StrCat("the path from device ", from, " to device ", to,
                         known ? " takes a link twice: " : " has an unknown link: ", path[i]));
      }
    }
  }
  return absl::OkStatus();
}

Network PrivateLinks(int num_devices, const Link& link) {
  Network network = Unconnected(num_devices);
  for (int from = 0; from < num_devices; ++from) {
    for (int to = 0; to < num_devices; ++to) {
      if (from == to) continue;
      network.Path(from, to) = {AddLink(&network, link, absl::StrCat(from, " to ", to))};
    }
  }
  return network;
}

Network SharedPorts(int num_devices, const Link& out, const Link& in) {
  Network network = Unconnected(num_devices);
  for (int d = 0; d < num_devices; ++d) {
    AddLink(&network, out, absl::StrCat("out of ", d));
    AddLink(&network, in, absl::StrCat("into ", d));
  }
  for (int from = 0; from < num_devices; ++from) {
    for (int to = 0; to < num_devices; ++to) {
      if (from != to) network.Path(from, to) = {2 * from, 2 * to + 1};
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
      if (a != b) network.Path(from, to) = {first + 2 * a, first + 2 * b + 1};
    }
  }
  return network;
}

Nanoseconds PathCost::TransferTime(Bytes bytes) const {
  if (bandwidth.value() == 0) return Nanoseconds(0);
  return Nanoseconds(std::llround(static_cast<double>(bytes.value()) * 1e9 / bandwidth.value()));
}

PathCost CostOfPath(const Network& network, int from, int to) {
  PathCost cost;
  for (int id : network.Path(from, to)) {
    const Link& link = network.links[id];
    cost.latency += link.latency;
    if (link.bandwidth.value() == 0) continue;
    if (cost.bandwidth.value() == 0 || link.bandwidth < cost.bandwidth) {
      cost.bandwidth = link.bandwidth;
    }
  }
  return cost;
}

}  // namespace pipelab
