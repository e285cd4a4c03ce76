#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "glog/logging.h"
#include "pipelines/cluster/cluster.h"

namespace pipelab {
namespace {

class NetworkBuilder {
 public:
  NetworkBuilder(const ClusterSpec& cluster, int num_devices)
      : cluster_(cluster), network_(UnconnectedNetwork(num_devices)) {}

  Network Build() {
    const int n = network_.num_devices;
    for (int from = 0; from < n; ++from) {
      for (int to = 0; to < n; ++to) {
        if (from != to) network_.RouteOf(from, to).uses = PathOf(from, to);
      }
    }
    return std::move(network_);
  }

 private:
  // A link is made when its first transfer is found, under its name.
  int LinkOf(const Connection& connection, std::string name) {
    const auto [it, made] =
        id_of_name_.emplace(std::move(name), static_cast<int>(network_.links.size()));
    if (made) {
      network_.links.push_back({it->first, connection.latency.value, connection.bandwidth.value});
    }
    return it->second;
  }

  // The innermost level that holds both.
  int LevelOf(int from, int to) const {
    int level = 0;
    while (from / cluster_.devices_in(level) != to / cluster_.devices_in(level)) ++level;
    return level;
  }

  // Latencies of a path add up: a port out and a port in have half of the level's each.
  static Connection HalfOf(Connection connection) {
    connection.latency.value = Nanoseconds((connection.latency.value.value() + 1) / 2);
    return connection;
  }

  std::vector<LinkUse> PathOf(int from, int to) {
    const int index = LevelOf(from, to);
    const ClusterLevel& level = cluster_.levels[index];
    const int64_t below = index == 0 ? 1 : cluster_.devices_in(index - 1);
    const std::string unit =
        index == 0 ? "device " : absl::StrCat(cluster_.levels[index - 1].name, " ");
    std::vector<LinkUse> path;
    switch (level.sharing) {
      case Sharing::kPair:
        path = {LinkOf(level.connection, absl::StrCat(level.name, ": ", from, " to ", to))};
        break;
      case Sharing::kDevice:
        path = Ports(level, "device ", from, to);
        break;
      case Sharing::kUnit:
        path = Ports(level, unit, from / below, to / below);
        break;
      case Sharing::kMesh:
      case Sharing::kTorus:
        path = GridPath(level, unit, from / below, to / below);
        break;
    }
    if (level.through.has_value()) {
      path.push_back(
          LinkOf(level.through->connection, absl::StrCat(level.through->name, " of ", level.name,
                                                         " ", from / cluster_.devices_in(index))));
    }
    return path;
  }

  std::vector<LinkUse> Ports(const ClusterLevel& level, const std::string& unit, int64_t from,
                             int64_t to) {
    const Connection half = HalfOf(level.connection);
    return {LinkOf(half, absl::StrCat(level.name, ": out of ", unit, from)),
            LinkOf(half, absl::StrCat(level.name, ": into ", unit, to))};
  }

  // From neighbour to neighbour, the last dimension first; ends are units of the level below.
  std::vector<LinkUse> GridPath(const ClusterLevel& level, const std::string& unit, int64_t from,
                                int64_t to) {
    const int64_t base = from / level.size * level.size, target = to - base;
    int64_t at = from - base, stride = 1;
    std::vector<LinkUse> path;
    for (size_t k = level.shape.size(); k-- > 0; stride *= level.shape[k]) {
      const int64_t n = level.shape[k], there = target / stride % n;
      for (int64_t here = at / stride % n; here != there; here = at / stride % n) {
        const int64_t up = (there - here + n) % n;  // hops upwards, around the end
        const bool rise = level.sharing == Sharing::kTorus ? 2 * up <= n : there > here;
        const int64_t next = at + ((here + (rise ? 1 : n - 1)) % n - here) * stride;
        path.push_back(LinkOf(level.connection, absl::StrCat(level.name, ": ", unit, base + at,
                                                             " to ", unit, base + next)));
        at = next;
      }
    }
    return path;
  }

  const ClusterSpec& cluster_;
  Network network_;
  std::map<std::string, int> id_of_name_;
};

}  // namespace

absl::StatusOr<Network> MakeNetwork(const ClusterSpec& cluster, int num_devices) {
  const absl::Status valid = CheckCluster(cluster);
  CHECK(valid.ok()) << valid;
  if (num_devices < 1 || num_devices > cluster.max_devices()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "cluster ", cluster.name, " has ", cluster.max_devices(), " devices, not ", num_devices));
  }
  return NetworkBuilder(cluster, num_devices).Build();
}

}  // namespace pipelab
