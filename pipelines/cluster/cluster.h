// A cluster: equal devices, and levels of connections from the innermost (devices behind one
// switch) to the outermost (nodes of the network).
//
//   PIPELAB_ASSIGN_OR_RETURN(ClusterSpec cluster, FindCluster("dgx-a100"));      // catalog.h
//   PIPELAB_ASSIGN_OR_RETURN(Network net, MakeNetwork(cluster, 32));              // rank_network.h
//
// Devices are numbered through, so that those of a unit of each level are consecutive. Two devices
// talk over the innermost level that holds both.
//
// How transfers of a level share its bandwidth (Sharing):
//   kPair    each ordered pair of devices has a link of its own (NVLink between all of four);
//   kDevice  each device has a port out and a port in, for all its transfers (NVSwitch);
//   kUnit    the devices of each unit of the level below share an uplink and a downlink (the
//            network card of a node, the PCIe root behind a switch);
//   kMesh,   the units of the level below lie on a grid of `shape`, and a transfer goes from
//   kTorus   neighbour to neighbour, along the last dimension first; each hop is a link of its own
//            direction. A torus is closed in each dimension, and takes the shorter way.
// A level may send all transfers of one of its units through one more resource (`through`): host
// memory, where devices have no way to each other.
#ifndef PIPELAB_PIPELINES_CLUSTER_CLUSTER_H_
#define PIPELAB_PIPELINES_CLUSTER_CLUSTER_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/optional.h"
#include "pipelines/cluster/device.h"

namespace pipelab {

enum class Sharing : uint8_t { kPair, kDevice, kUnit, kMesh, kTorus };

const char* SharingName(Sharing sharing);  // "pair"
absl::StatusOr<Sharing> FindSharing(absl::string_view name);

struct Connection {
  Sourced<Nanoseconds> latency;
  Sourced<BytesPerSecond> bandwidth;  // of each direction
};

// A collective library's rings reach so much, per step and device: they use all links of a device
// at once.
struct RingConnection {
  int64_t ranks = 0;  // of a ring inside of a unit, at most; 0: any number
  Connection connection;
  // An all-reduce that is no ring (a tree, sums in switches) takes as long as a ring with this
  // bandwidth. Unset: the connection's.
  absl::optional<Sourced<BytesPerSecond>> all_reduce;
  // What a device sends in an all-to-all of those ranks. Unset: the level's bandwidth.
  absl::optional<Sourced<BytesPerSecond>> all_to_all = {};
};

struct ClusterLevel {
  std::string name;  // "node"
  int64_t size = 0;  // units of the level below (innermost: devices) in one of this level
  Sharing sharing = Sharing::kPair;
  std::vector<int64_t> shape;  // of a mesh or torus; its product is the size
  Connection connection;
  // Inside of one unit of this level, by ascending ranks, where it is not the connection. The last
  // is for more ranks, too.
  std::vector<RingConnection> rings;
  struct Through {
    std::string name;  // "host memory"
    Connection connection;
  };
  absl::optional<Through> through;

  const RingConnection* RingOf(int64_t ranks) const;  // null: the connection
};

// The way from devices to the host's memory, for what they offload.
struct HostLink {
  Sourced<BytesPerSecond> bandwidth;  // of a copy in either direction, one at a time
  int64_t devices = 1;                // that take turns on it (those of one switch)

  // What each of them has where all copy.
  BytesPerSecond Share() const {
    return BytesPerSecond(bandwidth.value.value() / static_cast<double>(devices));
  }
};

// Every message is looked for level by level.
inline constexpr size_t kMostClusterLevels = 16;

struct ClusterSpec {
  std::string name;   // "dgx-a100"
  std::string title;  // for people
  DeviceSpec device;
  std::vector<ClusterLevel> levels;    // from the innermost
  absl::optional<HostLink> host_link;  // unset: not known, and schedules that offload are refused
  // The library does a collective's work when it is waited for, and not beside compute.
  bool collectives_at_wait = false;

  int64_t max_devices() const;
  // Devices in one unit of the level.
  int64_t devices_in(int level) const;
};

// With as many more nodes as so many devices take: units of the outermost level, where there are
// several levels and the outermost is a network of switches. A mesh, a torus and a single node stay
// as they are.
ClusterSpec WithNodesFor(int64_t devices, ClusterSpec cluster);

// What a file or a builder of clusters must satisfy; InvalidArgument names the place
// ("levels[1].size", "device.memory") and the reason.
absl::Status CheckCluster(const ClusterSpec& cluster);

// Empty for a device that is calibrated; else one line for people, to be printed beside what is
// predicted: "dgx-h100: rates of products and attention are measured (h100-sxm), all else is
// assumed; published runs reach ...".
std::string CalibrationWarning(const ClusterSpec& cluster);

// How far a prediction may be off where nothing was calibrated: predict with the cluster as it is,
// with WithEfficiency(cluster, range.best) and with range.worst. {1, 1} for a calibrated device.
EfficiencyRange EfficiencyRangeOf(const ClusterSpec& cluster);
// For files that do not say. Calibrating dgx-a100 changed its assumed shares by 0.77 (memory) and
// 0.93 (products).
inline constexpr EfficiencyRange kAssumedRange = {0.7, 1.15};
// All shares of the device's peaks times so much, at most 1; what the host takes, divided by it.
ClusterSpec WithEfficiency(ClusterSpec cluster, double times);

}  // namespace pipelab

#endif  // PIPELAB_PIPELINES_CLUSTER_CLUSTER_H_
