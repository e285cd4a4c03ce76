#include "pipelines/cluster/rank_network.h"

#include "gtest/gtest.h"
#include "pipelines/cluster/catalog.h"
#include "tools/base/status_matchers.h"

namespace pipelab {
namespace {

ClusterLevel Level(const std::string& name, int64_t size, Sharing sharing, Nanoseconds latency,
                   double bandwidth) {
  ClusterLevel level;
  level.name = name;
  level.size = size;
  level.sharing = sharing;
  level.connection = {{latency, "test"}, {BytesPerSecond(bandwidth), "test"}};
  return level;
}

// Nodes of 8 behind a switch, 16 of them with one network card each.
ClusterSpec Nodes() {
  ClusterSpec cluster = LoadCluster("--cluster", "dgx-a100").value();
  cluster.levels = {Level("node", 8, Sharing::kDevice, Microseconds(2), 300e9),
                    Level("cluster", 16, Sharing::kUnit, Microseconds(10), 80e9)};
  return cluster;
}

void ExpectCost(const PathCost& cost, Nanoseconds latency, double bandwidth) {
  EXPECT_EQ(cost.latency, latency);
  EXPECT_DOUBLE_EQ(cost.bandwidth.value(), bandwidth);
}

TEST(RingStep, InsideOfANodeEachDeviceHasItsPort) {
  const ClusterSpec cluster = Nodes();
  ExpectCost(RingStep(cluster, {8, 1}), Microseconds(2), 300e9);
  ExpectCost(RingStep(cluster, {2, 4}), Microseconds(2), 300e9);
  ExpectCost(RingStep(cluster, {1, 1}), Nanoseconds(0), 0);
}

TEST(RingStep, BetweenNodesRingsShareTheCard) {
  const ClusterSpec cluster = Nodes();
  // One ring of whole nodes leaves each once; eight rings of one device a node do, too.
  ExpectCost(RingStep(cluster, {32, 1}), Microseconds(10), 80e9);
  ExpectCost(RingStep(cluster, {4, 8}), Microseconds(10), 80e9 / 8);
  ExpectCost(RingStep(cluster, {8, 2}), Microseconds(10), 80e9 / 2);  // four members a node
  ExpectCost(RingStep(cluster, {4, 16}), Microseconds(10), 80e9 / 8);
}

TEST(RingStep, ALevelMaySayWhatItsRingsReach) {
  ClusterSpec cluster = Nodes();
  cluster.levels[0].ring = Connection{{Microseconds(3), "test"}, {BytesPerSecond(60e9), "test"}};
  ExpectCost(RingStep(cluster, {8, 1}), Microseconds(3), 60e9);
  ExpectCost(RingStep(cluster, {16, 1}), Microseconds(10), 60e9);
}

TEST(NeighbourHop, CopiesShareTheCardOfTheirNode) {
  const ClusterSpec cluster = Nodes();
  ExpectCost(NeighbourHop(cluster, 0, 2, 2), Microseconds(2), 300e9);
  ExpectCost(NeighbourHop(cluster, 6, 8, 2), Microseconds(10), 80e9 / 2);
  ExpectCost(NeighbourHop(cluster, 0, 8, 8), Microseconds(10), 80e9 / 8);
  ExpectCost(NeighbourHop(cluster, 0, 32, 32), Microseconds(10), 80e9 / 8);
}

TEST(NeighbourHop, ThroughHostMemoryAllOfAHostShare) {
  const ClusterSpec cluster = LoadCluster("--cluster", "p100-pcie").value();
  const Connection& host = cluster.levels[0].through->connection;
  const PathCost one = NeighbourHop(cluster, 0, 1, 1), four = NeighbourHop(cluster, 0, 4, 4);
  EXPECT_EQ(one.latency, cluster.levels[0].connection.latency.value + host.latency.value);
  EXPECT_DOUBLE_EQ(four.bandwidth.value(), host.bandwidth.value.value() / 4);
}

// The same as the table of all pairs, where one group talks.
TEST(RingStep, EqualsTheNetworkOfAllPairs) {
  ClusterSpec cluster = Nodes();
  PIPELAB_ASSERT_OK_AND_ASSIGN(const Network network, MakeNetwork(cluster, 32));
  CostTable costs;
  costs.network = network;
  std::vector<int> devices;
  for (int d = 0; d < 32; ++d) devices.push_back(d);
  for (const Collective kind :
       {Collective::kAllReduce, Collective::kReduceScatter, Collective::kAllGather}) {
    const Nanoseconds table = CollectiveTime(costs, kind, devices, Bytes(1 << 24));
    const Nanoseconds grid = RingTime(RingStep(cluster, {32, 1}), 32, kind, Bytes(1 << 24));
    EXPECT_EQ(grid, table);
  }
}

TEST(RingTime, IsTheFormula) {
  const PathCost hop = {Microseconds(1), BytesPerSecond(1e9)};
  EXPECT_EQ(RingTime(hop, 4, Collective::kAllReduce, Bytes(4000000)),
            Microseconds(6) + Milliseconds(6));
  EXPECT_EQ(RingTime(hop, 4, Collective::kAllGather, Bytes(4000000)),
            Microseconds(3) + Milliseconds(3));
  EXPECT_EQ(RingTime(hop, 1, Collective::kAllReduce, Bytes(4000000)), Nanoseconds(0));
}

}  // namespace
}  // namespace pipelab
