#include "pipelines/cluster/rank_network.h"

#include <algorithm>
#include <cstdint>
#include <set>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "pipelines/cluster/catalog.h"
#include "pipelines/cost/collectives.h"
#include "pipelines/ir/program.h"
#include "pipelines/schedules/catalog.h"
#include "tools/base/status_matchers.h"

namespace pipelab {
namespace {

ClusterLevel NamedLevel(const std::string& name, int64_t size, Sharing sharing, Nanoseconds latency,
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
  cluster.levels = {NamedLevel("node", 8, Sharing::kDevice, Microseconds(2), 300e9),
                    NamedLevel("cluster", 16, Sharing::kUnit, Microseconds(10), 80e9)};
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

// 8 of 16 ranks on two nodes send half of what they have over their node's card, or over their own.
TEST(ExchangePath, TheSlowestLinkRules) {
  ClusterSpec cluster = Nodes();
  const auto path = [&](int64_t ranks, int64_t stride) {
    std::vector<int64_t> group;
    for (int64_t r = 0; r < ranks; ++r) group.push_back(r * stride);
    return ExchangePath(cluster, group, stride);
  };
  ExpectCost(path(8, 1), Microseconds(2), 300e9 * 8 / 7);
  ExpectCost(path(4, 2), Microseconds(2), 300e9 * 4 / 3);
  ExpectCost(path(1, 1), Nanoseconds(0), 0);
  ExpectCost(path(16, 1), Microseconds(10), 80e9 / 4);
  ExpectCost(path(2, 8), Microseconds(10), 80e9 / 4);  // eight groups
  ExpectCost(path(8, 4), Microseconds(10), 80e9 / 6);  // four groups of two in each node
  cluster.levels[1].sharing = Sharing::kDevice;
  cluster.levels[1].connection.bandwidth.value = BytesPerSecond(25e9);
  ExpectCost(path(16, 1), Microseconds(10), 25e9 * 2);
  ExpectCost(path(64, 1), Microseconds(10), 25e9 * 64 / 56);
}

// How many of so many units of the same size tokens reach, by all routings of a small router.
double UnitsReached(const RoutedRows& rows, int64_t units) {
  const int64_t held = rows.experts / units,
                of_group = rows.nodes > 0 ? rows.experts / rows.nodes : 1;
  double sum = 0, ways = 0;
  // Each set of groups is as likely, and within it each set of experts.
  for (int64_t open = 0; open < (int64_t{1} << std::max<int64_t>(1, rows.nodes)); ++open) {
    const bool limited = rows.most_nodes > 0;
    if (limited && __builtin_popcountll(open) != rows.most_nodes) continue;
    if (!limited && open > 0) break;
    for (int64_t choice = 0; choice < (int64_t{1} << rows.experts); ++choice) {
      if (__builtin_popcountll(choice) != rows.chosen) continue;
      std::set<int64_t> reached;
      bool closed = false;
      for (int64_t e = 0; e < rows.experts; ++e) {
        if ((choice >> e & 1) == 0) continue;
        reached.insert(e / held);
        closed |= limited && (open >> (e / of_group) & 1) == 0;
      }
      if (closed) continue;
      sum += static_cast<double>(reached.size());
      ++ways;
    }
  }
  return sum / ways;
}

TEST(RoutedRows, ReachAsManyUnitsAsAllRoutingsDo) {
  for (const RoutedRows& rows :
       {RoutedRows{8, 1}, RoutedRows{8, 3}, RoutedRows{12, 4}, RoutedRows{12, 12},
        RoutedRows{12, 3, 4, 2}, RoutedRows{12, 4, 6, 3}, RoutedRows{12, 2, 2, 1},
        RoutedRows{12, 4, 4, 4}}) {
    for (const int64_t units : {1, 2, 4, 6, 12}) {
      if (rows.experts % units != 0) continue;
      if (rows.nodes > 0 && units % rows.nodes != 0 && rows.nodes % units != 0) continue;
      SCOPED_TRACE(absl::StrCat(rows.experts, " experts, ", rows.chosen, " chosen, ", rows.nodes,
                                " nodes, ", rows.most_nodes, " at most, ", units, " units"));
      EXPECT_NEAR(static_cast<double>(units) * rows.Reaches(rows.experts / units),
                  UnitsReached(rows, units), 1e-12);
    }
  }
}

// Tokens of 8 choices over 2 nodes of 8 devices with a port each: without the network once per
// token to the other node, and within a node once to each device.
TEST(ExchangePath, TokensGoOnceToEachNode) {
  ClusterSpec cluster = Nodes();
  cluster.levels[1].sharing = Sharing::kDevice;
  cluster.levels[1].connection.bandwidth.value = BytesPerSecond(25e9);
  std::vector<int64_t> ranks;
  for (int64_t r = 0; r < 16; ++r) ranks.push_back(r);
  const RoutedRows rows = {256, 8};
  const double of_node = rows.Reaches(128), of_device = rows.Reaches(16);
  ExpectCost(ExchangePath(cluster, ranks, 1, rows), Microseconds(12), 25e9 * 8 / of_node);
  // A network so wide that the links within nodes rule: a token reaches 16 of_device of them, an
  // eighth of which lie as their sender.
  cluster.levels[1].connection.bandwidth.value = BytesPerSecond(25e12);
  ExpectCost(ExchangePath(cluster, ranks, 1, rows), Microseconds(12),
             300e9 * 8 / (16 * of_device * 7 / 8));
  ranks.resize(8);
  ExpectCost(ExchangePath(cluster, ranks, 1, rows), Microseconds(2),
             300e9 * 8 / (7 * rows.Reaches(32)));
  // One choice of a token is one row, whichever way it takes.
  const RoutedRows one = {16, 1};
  ExpectCost(ExchangePath(cluster, ranks, 1, one), Microseconds(2),
             ExchangePath(cluster, ranks, 1).bandwidth.value());
}

TEST(RingStep, ALevelMaySayWhatItsRingsReach) {
  ClusterSpec cluster = Nodes();
  cluster.levels[0].rings = {
      {/*ranks=*/0, {{Microseconds(3), "test"}, {BytesPerSecond(60e9), "test"}}, {}}};
  ExpectCost(RingStep(cluster, {8, 1}), Microseconds(3), 60e9);
  ExpectCost(RingStep(cluster, {16, 1}), Microseconds(10), 60e9);
}

RingConnection Ring(int64_t ranks, double bandwidth) {
  return {ranks, {{Microseconds(3), "test"}, {BytesPerSecond(bandwidth), "test"}}, {}};
}

// Each of the ports that a ring has in a node takes its part.
TEST(RingStep, ALevelMaySayWhatRingsOfSomeRanksReach) {
  ClusterSpec cluster = *LoadCluster("--cluster", "dgx-h100");
  cluster.levels[0].rings.clear();
  cluster.levels[1].rings = {Ring(16, 40e9), Ring(64, 10e9)};
  ExpectCost(RingStep(cluster, {8, 1}), Microseconds(10), 450e9);
  ExpectCost(RingStep(cluster, {16, 1}), Microseconds(10), 8 * 40e9);
  ExpectCost(RingStep(cluster, {24, 1}), Microseconds(10), 8 * 10e9);
  ExpectCost(RingStep(cluster, {128, 1}), Microseconds(10), 8 * 10e9);
  ExpectCost(RingStep(cluster, {4, 8}), Microseconds(3), 40e9);  // one of a node
  ExpectCost(RingStep(cluster, {64, 8}), Microseconds(3), 10e9);
}

TEST(RingTime, AllReducesMayBeFasterThanRings) {
  ClusterSpec cluster = *LoadCluster("--cluster", "dgx-h100");
  cluster.levels[1].rings = {Ring(0, 10e9)};
  const Bytes bytes(int64_t{1} << 30);
  const auto time = [&](int64_t ranks, Collective kind) {
    return RingTime(RingStep(cluster, {ranks, 8}), ranks, kind, bytes) -
           Microseconds(3) * (ranks - 1) * (kind == Collective::kAllReduce ? 2 : 1);
  };
  const Nanoseconds gather = time(4, Collective::kAllGather);
  EXPECT_NEAR(static_cast<double>(time(4, Collective::kAllReduce).value()), 2.0 * gather.value(),
              2);
  cluster.levels[1].rings[0].all_reduce = Sourced<BytesPerSecond>{BytesPerSecond(16e9), "test"};
  EXPECT_EQ(time(4, Collective::kAllGather), gather);
  EXPECT_NEAR(static_cast<double>(time(4, Collective::kAllReduce).value()),
              2.0 * gather.value() * 10 / 16, 2);
}

// A message between pipeline devices whose copies are `data` ranks.
PathCost Message(const ClusterSpec& cluster, int64_t data, int pipeline, int from, int to) {
  RankGrid grid;
  grid.pipeline = pipeline;
  grid.data = data;
  return RankNetwork(&cluster, grid).Message(from, to);
}

TEST(RankNetwork, CopiesShareTheCardOfTheirNode) {
  ClusterSpec cluster = Nodes();
  cluster.device.collective_overhead.reset();
  ExpectCost(Message(cluster, 2, 4, 0, 1), Microseconds(2), 300e9);
  ExpectCost(Message(cluster, 2, 8, 3, 4), Microseconds(10), 80e9 / 2);
  ExpectCost(Message(cluster, 8, 2, 0, 1), Microseconds(10), 80e9 / 8);
  ExpectCost(Message(cluster, 32, 2, 0, 1), Microseconds(10), 80e9 / 8);
}

TEST(RankNetwork, ThroughHostMemoryAllOfAHostShare) {
  ClusterSpec cluster = LoadCluster("--cluster", "p100-pcie").value();
  cluster.device.collective_overhead.reset();
  const Connection& host = cluster.levels[0].through->connection;
  const PathCost one = Message(cluster, 1, 2, 0, 1), four = Message(cluster, 4, 2, 0, 1);
  EXPECT_EQ(one.latency, cluster.levels[0].connection.latency.value + host.latency.value);
  EXPECT_DOUBLE_EQ(four.bandwidth.value(), host.bandwidth.value.value() / 4);
}

// A program of one message each way and one sum over all copies.
Program SmallProgram(int pipeline, int members) {
  SchemeParams sizes;
  sizes.devices = pipeline;
  sizes.micro_batches = 2;
  sizes.data_parallel = members;
  return Lower(MakeSchedule("1f1b", sizes).value(), {}).value();
}

// The ring is over two nodes whose eight ranks each have a card of their own.
TEST(RankNetwork, ARingLeavesOverAllCardsOfItsNode) {
  ClusterSpec cluster = Nodes();
  cluster.levels[1].sharing = Sharing::kDevice;
  cluster.levels[1].connection.bandwidth.value = BytesPerSecond(25e9);
  ExpectCost(RingStep(cluster, {16, 1}), Microseconds(10), 8 * 25e9);
  ExpectCost(RingStep(cluster, {16, 8}), Microseconds(10), 25e9);
  ExpectCost(RingStep(cluster, {4, 4}), Microseconds(10), 2 * 25e9);
}

// A call of the library is paid once a collective, latency once a step, and gradients travel in the
// step's type, whatever ranks the ring is over.
TEST(RankNetwork, RingsOfAProgram) {
  ClusterSpec cluster = Nodes();
  cluster.device.collective_overhead = Sourced<Nanoseconds>{Microseconds(200), "test"};
  RankGrid grid;
  grid.pipeline = 2;
  grid.data = 8;
  grid.members = 2;
  grid.type = NumberType::kBf16;
  const RankNetwork ranks(&cluster, grid);
  CostTable costs;
  costs.network = ranks.Of(SmallProgram(2, 2));
  const Bytes bytes(int64_t{1} << 30);
  const double half = static_cast<double>(bytes.value()) / 2;  // 2 of 4 bytes a number
  EXPECT_NEAR(ToSeconds(CollectiveTime(costs, Collective::kAllReduce, {0, 1}, bytes)),
              200e-6 + 14 * 2e-6 + half * 14 / 8 / 300e9, 1e-8);
  EXPECT_EQ(ranks.CallOverhead(), Microseconds(200));
  EXPECT_EQ(ranks.Message(0, 1).latency, Microseconds(210));
}

// Two stages on one node leave over one card: their messages are on one link.
TEST(RankNetwork, PipelineDevicesOfANodeShareItsCard) {
  const ClusterSpec cluster = Nodes();
  RankGrid grid;
  grid.pipeline = 16;
  const Network net = RankNetwork(&cluster, grid).OfAllPairs();
  EXPECT_EQ(net.RouteOf(6, 8).uses, net.RouteOf(7, 9).uses);
  grid.pipeline = 4;
  grid.data = 4;
  grid.members = 2;
  const Network folded = RankNetwork(&cluster, grid).OfAllPairs();
  // The link is that of two copies' devices on pipeline device 1: four ranks leave the node at one
  // time.
  EXPECT_EQ(folded.RouteOf(2, 4).uses[0].load, 4);
  EXPECT_NE(folded.RouteOf(2, 4).uses[0].link, folded.RouteOf(3, 5).uses[0].link);
}

// Devices with parts of the same samples are side by side in groups of T, in each order.
TEST(RankGrid, ContextParallelDevicesAreTogether) {
  RankGrid grid;
  grid.pipeline = 3;
  grid.tensor = 2;
  grid.context = 4;
  grid.data = 4 * 5;
  for (const RankOrder order : {RankOrder::kTensorDataPipeline, RankOrder::kTensorPipelineData,
                                RankOrder::kTensorDataMirrored}) {
    grid.order = order;
    std::set<int64_t> ranks;
    for (int p = 0; p < grid.pipeline; ++p) {
      for (int64_t d = 0; d < grid.data; ++d) {
        ranks.insert(grid.rank(p, d));
        EXPECT_EQ(grid.rank(p, d) - grid.rank(p, d / 4 * 4), d % 4 * grid.tensor);
      }
    }
    EXPECT_EQ(ranks.size(), 60);
    EXPECT_EQ(*ranks.rbegin(), grid.ranks() - grid.tensor);
  }
  grid.order = RankOrder::kTensorPipelineData;
  EXPECT_EQ(grid.rank(1), 8);
  EXPECT_EQ(grid.rank(0, 4), 24);
  EXPECT_EQ(grid.copies_within(48), 16);
}

// The same as the table of all pairs, where one group talks.
TEST(RingStep, EqualsTheNetworkOfAllPairs) {
  ClusterSpec cluster = Nodes();
  cluster.device.collective_overhead.reset();
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

// Four stages of eight replicas on four nodes of eight. Side by side, the replicas' messages leave
// a node together over its card and their sums stay within it; with the pipeline inside, two
// pipelines share a node, messages stay within it and eight sums of a stage cross four cards.
TEST(RankOrder, SaysWhatCrossesNodes) {
  const ClusterSpec cluster = Nodes();
  RankGrid grid;
  grid.pipeline = 4;
  grid.data = 8;
  const RankNetwork side_by_side(&cluster, grid);
  EXPECT_DOUBLE_EQ(side_by_side.Message(0, 1).bandwidth.value(), 80e9 / 8);
  EXPECT_DOUBLE_EQ(side_by_side.DataRing(0).bandwidth.value(), 300e9);
  grid.order = RankOrder::kTensorPipelineData;
  EXPECT_EQ(grid.rank(1, 2), 9);
  const RankNetwork apart(&cluster, grid);
  EXPECT_DOUBLE_EQ(apart.Message(0, 1).bandwidth.value(), 300e9);
  EXPECT_DOUBLE_EQ(apart.DataRing(0).bandwidth.value(), 80e9);
  // A pipeline of two nodes: one replica's message leaves a node.
  grid.pipeline = 16;
  EXPECT_DOUBLE_EQ(RankNetwork(&cluster, grid).Message(7, 8).bandwidth.value(), 80e9);
}

// Replicas that go both ways have copies of a stage on p and P - 1 - p: with these side by side
// their sum stays in a node, where otherwise it crosses.
TEST(RankOrder, MirroredDevicesShareANode) {
  const ClusterSpec cluster = Nodes();
  SchemeParams sizes;
  sizes.devices = 8;
  sizes.micro_batches = 8;
  sizes.data_parallel = 2;
  const Program program = Lower(MakeSchedule("chimera", sizes).value(), {}).value();
  RankGrid grid;
  grid.pipeline = 8;
  grid.data = grid.members = 2;
  const auto slowest = [&](RankOrder order) {
    grid.order = order;
    Nanoseconds latency;
    for (const auto& [devices, ring] : RankNetwork(&cluster, grid).Of(program).rings) {
      EXPECT_EQ(ring.ranks, 4);
      latency = std::max(latency, ring.step_latency);
    }
    return latency;
  };
  EXPECT_EQ(slowest(RankOrder::kTensorDataPipeline), Microseconds(10));
  EXPECT_EQ(slowest(RankOrder::kTensorDataMirrored), Microseconds(2));
  std::set<int64_t> ranks;
  for (int p = 0; p < 8; ++p) ranks.insert(grid.rank(p, 1));
  EXPECT_EQ(ranks, (std::set<int64_t>{1, 3, 5, 7, 9, 11, 13, 15}));
  EXPECT_EQ(grid.rank(7), grid.rank(0) + 2);
  // Messages from the first node's last device to the second's first one, and at the turn.
  const RankNetwork mirrored(&cluster, grid);
  EXPECT_EQ(mirrored.Message(1, 2).latency - mirrored.CallOverhead(), Microseconds(10));
  EXPECT_EQ(mirrored.Message(3, 4).latency - mirrored.CallOverhead(), Microseconds(2));
}

}  // namespace
}  // namespace pipelab
