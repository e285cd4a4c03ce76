#include "pipelines/cluster/cluster.h"

#include <algorithm>
#include <cstdlib>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "pipelines/cluster/catalog.h"
#include "pipelines/cluster/cluster_json.h"
#include "pipelines/cluster/rank_network.h"
#include "tools/base/status_matchers.h"

namespace pipelab {
namespace {

using testing::HasSubstr;
using testing::UnorderedElementsAre;

ClusterSpec Made(std::vector<ClusterLevel> levels) {
  ClusterSpec cluster = *LoadCluster("--cluster", "dgx1-v100");
  cluster.name = "made";
  cluster.device.collective_overhead.reset();  // links alone
  cluster.levels = std::move(levels);
  return cluster;
}

ClusterLevel Level(std::string name, int64_t size, Sharing sharing, double gigabytes,
                   Nanoseconds latency = Microseconds(2)) {
  ClusterLevel level;
  level.name = std::move(name);
  level.size = size;
  level.sharing = sharing;
  level.connection.latency = {latency, "test"};
  level.connection.bandwidth = {BytesPerSecond(gigabytes * 1e9), "test"};
  return level;
}

Network NetworkOf(const ClusterSpec& cluster, int devices) {
  EXPECT_THAT(CheckCluster(cluster), IsOk());
  const absl::StatusOr<Network> net = MakeNetwork(cluster, devices);
  EXPECT_THAT(net, IsOk());
  EXPECT_THAT(CheckNetwork(*net), IsOk());
  return *net;
}

// The names on the way.
std::vector<std::string> Way(const Network& net, int from, int to) {
  std::vector<std::string> names;
  for (const LinkUse& use : net.RouteOf(from, to).uses) {
    names.push_back(net.links[use.link].name);
  }
  return names;
}

TEST(MakeNetwork, PairsAndUplinks) {
  const Network net = NetworkOf(
      Made({Level("node", 4, Sharing::kPair, 25), Level("rack", 3, Sharing::kUnit, 10)}), 12);
  EXPECT_THAT(Way(net, 0, 3), UnorderedElementsAre("node: 0 to 3"));
  EXPECT_THAT(Way(net, 3, 0), UnorderedElementsAre("node: 3 to 0"));
  EXPECT_THAT(Way(net, 1, 5), UnorderedElementsAre("rack: out of node 0", "rack: into node 1"));
  EXPECT_THAT(Way(net, 2, 11), UnorderedElementsAre("rack: out of node 0", "rack: into node 2"));
  EXPECT_EQ(net.RouteOf(1, 5).uses[0], net.RouteOf(2, 11).uses[0]);  // one uplink a node
  EXPECT_EQ(net.links.size(), 3u * 12 + 3 * 2);
  // A level's latency is the whole way's.
  EXPECT_EQ(CostOfPath(net, 0, 3).latency, Microseconds(2));
  EXPECT_EQ(CostOfPath(net, 1, 5).latency, Microseconds(2));
  EXPECT_EQ(CostOfPath(net, 1, 5).bandwidth, BytesPerSecond(10e9));
}

TEST(MakeNetwork, PortsOfDevices) {
  const Network net = NetworkOf(Made({Level("node", 8, Sharing::kDevice, 300)}), 8);
  EXPECT_THAT(Way(net, 2, 5), UnorderedElementsAre("node: out of device 2", "node: into device 5"));
  EXPECT_EQ(net.links.size(), 16u);
}

TEST(MakeNetwork, ThroughHostMemory) {
  ClusterLevel host = Level("host", 2, Sharing::kDevice, 12);
  host.through.emplace();
  host.through->name = "memory";
  host.through->connection = {{Microseconds(5), "test"}, {BytesPerSecond(6e9), "test"}};
  const Network net = NetworkOf(Made({host, Level("lan", 2, Sharing::kUnit, 1)}), 4);
  EXPECT_THAT(Way(net, 2, 3), UnorderedElementsAre("host: out of device 2", "host: into device 3",
                                                   "memory of host 1"));
  EXPECT_EQ(CostOfPath(net, 2, 3).bandwidth, BytesPerSecond(6e9));
  EXPECT_EQ(CostOfPath(net, 2, 3).latency, Microseconds(7));
  EXPECT_THAT(Way(net, 0, 3), UnorderedElementsAre("lan: out of host 0", "lan: into host 1"));
}

TEST(MakeNetwork, GridsHopFromNeighbourToNeighbour) {
  ClusterLevel grid = Level("slice", 12, Sharing::kMesh, 60, Microseconds(1));
  grid.shape = {3, 4};
  const Network mesh = NetworkOf(Made({grid}), 12);
  EXPECT_THAT(Way(mesh, 0, 3),
              UnorderedElementsAre("slice: device 0 to device 1", "slice: device 1 to device 2",
                                   "slice: device 2 to device 3"));
  EXPECT_THAT(Way(mesh, 5, 8),
              UnorderedElementsAre("slice: device 5 to device 4", "slice: device 4 to device 8"));
  grid.sharing = Sharing::kTorus;
  const Network torus = NetworkOf(Made({grid}), 12);
  EXPECT_THAT(Way(torus, 0, 3), UnorderedElementsAre("slice: device 0 to device 3"));
  EXPECT_THAT(Way(torus, 8, 0), UnorderedElementsAre("slice: device 8 to device 0"));
  EXPECT_EQ(torus.links.size(), 12u * 4);
  // Hops are the distance on the grid.
  for (int from = 0; from < 12; ++from) {
    for (int to = 0; to < 12; ++to) {
      const int dx = std::abs(from % 4 - to % 4), dy = std::abs(from / 4 - to / 4);
      EXPECT_EQ(mesh.RouteOf(from, to).uses.size(), static_cast<size_t>(dx + dy));
      EXPECT_EQ(torus.RouteOf(from, to).uses.size(),
                static_cast<size_t>(std::min(dx, 4 - dx) + std::min(dy, 3 - dy)));
      EXPECT_EQ(CostOfPath(torus, from, to).latency,
                Microseconds(static_cast<int64_t>(torus.RouteOf(from, to).uses.size())));
    }
  }
}

TEST(MakeNetwork, GridsOfChipsWithSeveralCores) {
  ClusterLevel slice = Level("slice", 4, Sharing::kTorus, 60);
  slice.shape = {4};
  const Network net = NetworkOf(Made({Level("chip", 2, Sharing::kPair, 300), slice}), 8);
  EXPECT_THAT(Way(net, 6, 7), UnorderedElementsAre("chip: 6 to 7"));
  EXPECT_THAT(Way(net, 0, 6), UnorderedElementsAre("slice: chip 0 to chip 3"));
  EXPECT_EQ(net.RouteOf(0, 6).uses, net.RouteOf(1, 7).uses);
  EXPECT_EQ(net.RouteOf(0, 5).uses.size(), 2u);
}

TEST(MakeNetwork, OfTheFirstDevicesOnly) {
  const ClusterSpec cluster =
      Made({Level("node", 4, Sharing::kPair, 25), Level("rack", 3, Sharing::kUnit, 10)});
  EXPECT_EQ(cluster.max_devices(), 12);
  EXPECT_EQ(NetworkOf(cluster, 5).num_devices, 5);
  EXPECT_EQ(std::string(MakeNetwork(cluster, 13).status().message()),
            "cluster made has 12 devices, not 13");
  EXPECT_FALSE(MakeNetwork(cluster, 0).ok());
}

TEST(CheckCluster, NamesThePlace) {
  const auto message = [](const ClusterSpec& cluster) {
    return std::string(CheckCluster(cluster).message());
  };
  const ClusterSpec good = Made({Level("node", 4, Sharing::kPair, 25)});
  ClusterSpec bad = good;
  bad.device.memory_bandwidth.value = BytesPerSecond(0);
  EXPECT_EQ(message(bad), "device.memory_bandwidth: must be above 0, not 0");
  bad = good;
  bad.device.peaks[NumberType::kFp32].source.clear();
  EXPECT_THAT(message(bad), HasSubstr("device.peaks.fp32.source: missing"));
  bad = good;
  bad.levels[0].size = 0;
  EXPECT_THAT(message(bad), HasSubstr("levels[0].size: must be from 1 to"));
  bad = good;
  bad.levels[0].shape = {2, 2};
  EXPECT_EQ(message(bad), "levels[0].shape: only a mesh or torus has one");
  bad.levels[0].sharing = Sharing::kMesh;
  EXPECT_EQ(message(bad), "");
  bad.levels[0].shape = {2, 3};
  EXPECT_EQ(message(bad), "levels[0].shape: must multiply to the size, 4");
  bad.levels[0].shape = {-2, -2};
  EXPECT_NE(message(bad), "");
  bad = good;
  bad.levels[0].connection.bandwidth.value = BytesPerSecond(-1);
  EXPECT_EQ(message(bad), "levels[0].bandwidth: must be above 0, not -1");
  bad = good;
  bad.levels.assign(3, Level("level", 1 << 10, Sharing::kPair, 1));
  EXPECT_THAT(message(bad), HasSubstr("levels[2].size: makes more than"));
  bad = good;
  bad.levels[0].name = std::string(201, 'n');
  EXPECT_EQ(message(bad), "levels[0].name: must have at most 200 bytes, not 201");
  bad = good;
  bad.levels[0].rings.resize(1025);
  EXPECT_EQ(message(bad), "levels[0].ring: must be at most 1024, not 1025");
  bad = good;
  bad.levels.assign(17, Level("level", 1, Sharing::kPair, 1));
  EXPECT_EQ(message(bad), "levels: must be at most 16, not 17");
  bad.levels.pop_back();
  EXPECT_EQ(message(bad), "");
  bad.levels.clear();
  EXPECT_EQ(message(bad), "levels: must have one");
}

TEST(Catalog, EveryClusterIsWholeAndConnected) {
  const std::vector<std::string> names = ClusterNames();
  EXPECT_EQ(std::set<std::string>(names.begin(), names.end()).size(), names.size());
  for (const char* name :
       {"dgx-a100",    "dgx-b200",    "dgx-b300",    "dgx-h100",        "dgx-h200",
        "dgx1-v100",   "gb200-nvl72", "gb300-nvl72", "mi300x",          "p100-pcie",
        "p40-pcie",    "p3.16xlarge", "p3.8xlarge",  "p3.8xlarge-pcie", "preemptible-t4",
        "rtx4090-box", "summit",      "summit-4gpu", "template",        "tpu-v2",
        "tpu-v3",      "a100-pcie",   "h100-pcie",   "l40s-box",        "rtx-pro-6000-box"}) {
    EXPECT_THAT(names, testing::Contains(name));
  }
  for (const std::string& name : names) {
    SCOPED_TRACE(name);
    PIPELAB_ASSERT_OK_AND_ASSIGN(const ClusterSpec cluster, LoadCluster("--cluster", name));
    EXPECT_EQ(cluster.name, name);
    const int devices = static_cast<int>(std::min<int64_t>(cluster.max_devices(), 48));
    const Network net = NetworkOf(cluster, devices);
    for (int from = 0; from < devices; ++from) {
      for (int to = 0; to < devices; ++to) {
        EXPECT_EQ(net.RouteOf(from, to).uses.empty(), from == to);
      }
    }
    for (const auto& [type, peak] : cluster.device.peaks) {
      for (OperationKind kind :
           {OperationKind::kMatmul, OperationKind::kConvolution, OperationKind::kAttention}) {
        Operation operation = MemoryOperation(kind, 1000000);
        operation.flops = Flops(1e12);
        PIPELAB_ASSERT_OK_AND_ASSIGN(const Nanoseconds time,
                                     OperationTime(cluster.device, type, operation));
        const bool as_bf16 = type == NumberType::kFp8 && kind != OperationKind::kMatmul;
        const double at_peak =
            1e12 / (as_bf16 ? cluster.device.peaks.at(NumberType::kBf16) : peak).value.value();
        EXPECT_GT(ToSeconds(time), at_peak);
        EXPECT_LT(ToSeconds(time), 6 * at_peak);  // a T4 is held back by its power limit
      }
    }
  }
  EXPECT_THAT(std::string(LoadCluster("--cluster", "dgx").status().message()),
              HasSubstr("--cluster=dgx: no such cluster, and no file, whose name would end in "
                        ".json; did you mean dgx-a100, dgx-b200, dgx-b300, dgx-h100 or "
                        "dgx-h200?"));
}

// One device, one link and one host for all machines of V100s: they differ in memory, and in how
// links and cards are arranged.
TEST(Catalog, MachinesOfV100sAgree) {
  const auto load = [](const char* name) { return LoadCluster("--cluster", name).value(); };
  const ClusterSpec dgx1 = load("dgx1-v100"), p3 = load("p3.16xlarge"), summit = load("summit"),
                    four = load("summit-4gpu"), quad = load("p3.8xlarge"),
                    pcie = load("p3.8xlarge-pcie");
  for (const ClusterSpec& other : {p3, summit, four, quad, pcie}) {
    SCOPED_TRACE(other.name);
    ClusterSpec same = dgx1;
    same.device = other.device;
    same.device.name = dgx1.device.name;
    same.device.memory = dgx1.device.memory;
    EXPECT_EQ(ClusterToJson(same), ClusterToJson(dgx1));
    if (other.name == pcie.name) continue;  // no NVLink
    EXPECT_EQ(other.levels[0].connection.latency.value, dgx1.levels[0].connection.latency.value);
  }
  const auto bandwidth = [](const ClusterSpec& c, int level, double links) {
    return c.levels[level].connection.bandwidth.value.value() / links;
  };
  const auto ring = [](const ClusterSpec& c, int level, double links) {
    return c.levels[level].rings[0].connection.bandwidth.value.value() / links;
  };
  const double link = bandwidth(dgx1, 0, 1), card = bandwidth(dgx1, 2, 4);
  for (const ClusterSpec* cube : {&dgx1, &p3}) {
    EXPECT_EQ(bandwidth(*cube, 0, 1), link);
    EXPECT_EQ(bandwidth(*cube, 1, 1), link);
    EXPECT_EQ(ring(*cube, 0, 4), link);
    EXPECT_EQ(ring(*cube, 1, 6), link);
  }
  EXPECT_EQ(bandwidth(quad, 0, 1), link);
  for (const ClusterSpec* bricks : {&summit, &four}) EXPECT_EQ(bandwidth(*bricks, 0, 2), link);
  EXPECT_EQ(ring(summit, 0, 4), link);
  EXPECT_EQ(bandwidth(summit, 1, 1), bandwidth(four, 1, 1));
  EXPECT_EQ(bandwidth(summit, 2, 2), card);
  EXPECT_EQ(bandwidth(four, 2, 1), card);
}

}  // namespace
}  // namespace pipelab
