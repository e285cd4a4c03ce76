#include "pipelines/graphs/graph_placement.h"

#include <algorithm>
#include <memory>
#include <numeric>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "models/data/graph_store.h"
#include "models/data/split_sampler.h"
#include "pipelines/cluster/catalog.h"
#include "pipelines/cluster/cluster.h"
#include "pipelines/cluster/network.h"
#include "pipelines/cluster/rank_network.h"
#include "pipelines/graphs/graph_step_time.h"
#include "tools/base/rng.h"
#include "tools/base/status_matchers.h"
#include "tools/base/units.h"

namespace pipelab {
namespace {

constexpr int32_t kVertices = 3000;

const CsrGraph& Graph() {
  static const CsrGraph& graph = *new CsrGraph([] {
    GeneratedGraph shape;
    shape.degrees_V = PowerLawDegrees(kVertices, 1.9, 2, 200, 1);
    shape.width = 0;
    return GenerateGraph(shape, 1).graph;
  }());
  return graph;
}

GraphSetUp SetUpOf(GraphSystem system) {
  GraphSetUp set_up;
  set_up.graph = &Graph();
  set_up.system = system;
  set_up.fanouts = {5, 4, 3};
  set_up.width = 64;
  set_up.hidden = 16;
  set_up.classes = 8;
  return set_up;
}

VertexOwners Owners() {
  const CounterRng rng(3, "test/owners");
  VertexOwners owners(kVertices);
  for (int32_t v = 0; v < kVertices; ++v) owners[v] = static_cast<uint8_t>(rng.Below(v, 4));
  return owners;
}

// Vertex 0 is the hottest one.
std::vector<int64_t> Heat() {
  std::vector<int64_t> heat(kVertices);
  for (int32_t v = 0; v < kVertices; ++v) heat[v] = kVertices - v;
  return heat;
}

std::vector<int32_t> Batch() {
  std::vector<int32_t> batch(64);
  for (int i = 0; i < 64; ++i) batch[i] = 40 * i + 7;
  return batch;
}

GraphStep Count(const GraphSetUp& set_up) {
  return GraphCounter::Make(set_up, Heat(), Owners()).value()->Count(5, Batch());
}

int64_t Sum(const ByteMatrix& m) { return std::accumulate(m.begin(), m.end(), int64_t{0}); }

TEST(GraphPlacement, SplitLoadsAndComputesOnceWhatOthersRepeat) {
  const GraphSetUp set_up = SetUpOf(GraphSystem::kSplit);
  const GraphSample one =
      NeighbourSampler(&Graph(), set_up.fanouts, set_up.seed).Sample(5, Batch());
  const GraphStep split = Count(set_up), data = Count(SetUpOf(GraphSystem::kData));
  EXPECT_EQ(split.rows(), one.blocks[0].num_sources());
  EXPECT_EQ(split.edges(), one.num_edges());
  EXPECT_GT(data.rows(), split.rows());
  EXPECT_GT(data.edges(), split.edges());
  EXPECT_EQ(data.exchanged_bytes(), 0);
  EXPECT_GT(split.exchanged_bytes(), 0);
}

// Data-parallel parts are the samples of a member alone.
TEST(GraphPlacement, DataParallelPartsAreSamplesOfTheirOwn) {
  const GraphSetUp set_up = SetUpOf(GraphSystem::kData);
  NeighbourSampler sampler(&Graph(), set_up.fanouts, set_up.seed);
  const GraphStep step = Count(set_up);
  const std::vector<int32_t> batch = Batch();
  for (int m = 0; m < 4; ++m) {
    const GraphSample sample = sampler.Sample(5, absl::MakeConstSpan(batch).subspan(16 * m, 16));
    EXPECT_EQ(step.members[m].host_rows, sample.blocks[0].num_sources());
    EXPECT_EQ(step.members[m].layers[2][0].targets, 16);
    EXPECT_EQ(step.members[m].drawn[0].edges, sample.blocks[2].num_edges());
  }
}

// Without room all rows are the host's; with room for all a quarter each is at a peer's.
TEST(GraphPlacement, CachesTakeTheHottest) {
  GraphSetUp set_up = SetUpOf(GraphSystem::kCache);
  const int64_t all = Count(set_up).rows();
  EXPECT_EQ(Count(SetUpOf(GraphSystem::kData)).rows(), all);
  int64_t last_host = all + 1;
  for (int64_t rows : {0, 100, 400, kVertices / 4}) {
    set_up.cache_bytes = rows * set_up.width * 4;
    const GraphStep step = Count(set_up);
    int64_t host = 0, peer = 0;
    for (const GraphWork& m : step.members) host += m.host_rows, peer += m.peer_rows;
    EXPECT_EQ(step.rows(), all);
    EXPECT_EQ(Sum(step.loading), peer * set_up.width * 4);
    EXPECT_LT(host, last_host);
    last_host = host;
  }
  EXPECT_EQ(last_host, 0);
}

// Room for half of all rows at each member: a third of the rows can be at each, 2/3 / 4 + 1/3 =
// 1/2.
TEST(GraphPlacement, HottestRowsAreRepeated) {
  GraphSetUp set_up = SetUpOf(GraphSystem::kCache);
  set_up.cache_bytes = kVertices / 2 * set_up.width * 4;
  const int64_t peers = Sum(Count(set_up).loading);
  set_up.repeat_hottest = true;
  const GraphStep step = Count(set_up);
  EXPECT_LT(Sum(step.loading), peers);
  for (const GraphWork& m : step.members) EXPECT_EQ(m.host_rows, 0);
  set_up.cache_bytes = kVertices * set_up.width * 4;
  EXPECT_EQ(Sum(Count(set_up).loading), 0);
}

// A member that has its own part in its cache never asks the host nor a peer.
TEST(GraphPlacement, SplitCachesAddUp) {
  GraphSetUp set_up = SetUpOf(GraphSystem::kSplit);
  set_up.cache_bytes = int64_t{kVertices} * set_up.width * 4;
  const GraphStep step = Count(set_up);
  for (const GraphWork& m : step.members) {
    EXPECT_EQ(m.host_rows + m.peer_rows, 0);
    EXPECT_GT(m.own_rows, 0);
  }
}

// What split members send is what their shuffles say, and the ids that they ask for.
TEST(GraphPlacement, BytesAreThoseOfTheShuffles) {
  const GraphSetUp set_up = SetUpOf(GraphSystem::kSplit);
  const VertexOwners owners = Owners();
  auto group = MakeSplitMembers(&Graph(), &owners, 4, set_up.fanouts, set_up.seed);
  const std::vector<SplitSample> samples = SampleOfAll(5, Batch(), &group);
  const GraphStep step = Count(set_up);
  for (int l = 0; l < 3; ++l) {
    int64_t rows = 0;
    for (int m = 0; m < 4; ++m) rows += samples[m].blocks[l].shuffle.sent_rows();
    EXPECT_EQ(Sum(step.forward[l]), rows * (l == 0 ? 64 : 16) * 4);
    EXPECT_EQ(Sum(step.sampling[2 - l]), rows * 4);
    EXPECT_EQ(Sum(step.backward[l]), l == 0 ? 0 : rows * 16 * 4);
  }
}

// All members compute the first layer of all blocks by a quarter of the columns.
TEST(GraphPlacement, PushPullDividesColumns) {
  GraphSetUp set_up = SetUpOf(GraphSystem::kPushPull);
  const GraphStep data = Count(SetUpOf(GraphSystem::kData)), push = Count(set_up);
  EXPECT_EQ(push.row_bytes, 64);
  EXPECT_EQ(push.rows(), data.rows());
  EXPECT_EQ(push.edges(), data.edges());
  int64_t targets = 0, sources = 0;
  for (const GraphWork& m : data.members) {
    targets += m.layers[0][0].targets;
    sources += m.layers[0][0].sources;
  }
  EXPECT_EQ(Sum(push.forward[0]), 3 * targets * 16 * 4);
  EXPECT_EQ(Sum(push.backward[0]), 3 * targets * 16 * 4);
  set_up.heads = 4;
  EXPECT_EQ(Sum(Count(set_up).forward[0]), 3 * sources * 16 * 4);
}

// Two hosts have half of the batch each, and send nothing to one another.
TEST(GraphPlacement, HostsAreApart) {
  for (GraphSystem system : kGraphSystems) {
    SCOPED_TRACE(GraphSystemName(system));
    GraphSetUp set_up = SetUpOf(system);
    set_up.hosts = 2;
    const GraphStep step = Count(set_up);
    ASSERT_EQ(step.members.size(), 8);
    for (const ByteMatrix& m : step.forward) {
      for (size_t i = 0; i < m.size(); ++i) {
        EXPECT_TRUE(i / 8 / 4 == i % 8 / 4 || m[i] == 0);
      }
    }
    int64_t targets = 0;
    for (const GraphWork& m : step.members) targets += m.layers[2][0].targets;
    EXPECT_EQ(targets, 64);
  }
}

TEST(GraphPlacement, Errors) {
  GraphSetUp set_up = SetUpOf(GraphSystem::kSplit);
  EXPECT_FALSE(GraphCounter::Make(set_up, Heat(), {}).ok());
  EXPECT_THAT(GraphCounter::Make(set_up, Heat(), VertexOwners(kVertices, 4)).status().message(),
              testing::HasSubstr("a host has 4 members"));
  set_up.width = 3;
  EXPECT_FALSE(GraphCounter::Make(set_up, Heat(), Owners()).ok());
}

class GraphStepTimeTest : public testing::Test {
 protected:
  const ClusterSpec devices_ = LoadCluster("--cluster", "p3.8xlarge").value();
  const ClusterSpec host_ = LoadCluster("--cluster", "p3.8xlarge-pcie").value();
  const GraphMachine machine_ = {&devices_, &host_};
};

// 22 GB over a link of 22 GB/s; other pairs have their own; between hosts 10 Gbit/s are shared.
TEST_F(GraphStepTimeTest, TheFullestLinkRules) {
  const Network network = MakeNetwork(devices_, 8).value();
  ByteMatrix bytes(64);
  bytes[1] = 22'000'000'000;
  EXPECT_NEAR(ToSeconds(ExchangeTime(network, bytes)), 1, 1e-3);
  bytes[2] = bytes[8] = 22'000'000'000;
  EXPECT_NEAR(ToSeconds(ExchangeTime(network, bytes)), 1, 1e-3);
  bytes[4] = bytes[8 + 5] = 1'250'000'000;  // over one uplink
  EXPECT_NEAR(ToSeconds(ExchangeTime(network, bytes)), 2, 1e-3);
}

// Two of four devices share 12 GB/s: the fuller half rules.
TEST_F(GraphStepTimeTest, LoadingFromTheHost) {
  const GraphSetUp set_up = SetUpOf(GraphSystem::kData);
  GraphStep counts = Count(set_up);
  const auto rows = [&](int a, int b, int c, int d) {
    const int of[] = {a, b, c, d};
    for (int m = 0; m < 4; ++m) counts.members[m].host_rows = of[m] * 12'000'000'000 / 256;
    return ToSeconds(TimeOfStep(counts, set_up, machine_)->load);
  };
  EXPECT_NEAR(rows(1, 1, 1, 1), 2, 1e-3);
  EXPECT_NEAR(rows(1, 0, 1, 0), 1, 1e-3);
  EXPECT_NEAR(rows(1, 2, 1, 1), 3, 1e-3);
}

// More of everything takes longer, and a system without exchanges has none. Ten batches count as
// one of ten times the size.
TEST_F(GraphStepTimeTest, GrowsWithCounts) {
  for (GraphSystem system : kGraphSystems) {
    SCOPED_TRACE(GraphSystemName(system));
    const GraphSetUp set_up = SetUpOf(system);
    const GraphStep once = Count(set_up);
    GraphStep ten;
    for (int i = 0; i < 10; ++i) Add(once, &ten);
    EXPECT_EQ(ten.rows(), 10 * once.rows());
    EXPECT_EQ(ten.edges(), 10 * once.edges());
    EXPECT_EQ(ten.exchanged_bytes(), 10 * once.exchanged_bytes());
    EXPECT_DOUBLE_EQ(ten.largest_edges(), once.largest_edges());
    const GraphStepTime a = TimeOfStep(once, set_up, machine_).value();
    const GraphStepTime b = TimeOfStep(ten, set_up, machine_).value();
    EXPECT_LT(a.sample, b.sample);
    EXPECT_LT(a.load, b.load);
    EXPECT_LT(a.train, b.train);
    EXPECT_EQ(a.exchange == Nanoseconds(0),
              system == GraphSystem::kData || system == GraphSystem::kCache);
  }
}

// The products of GraphSAGE: of targets x in x out, and of all sources where rows become narrower.
TEST(GraphLayerOperations, FlopsByHand) {
  GraphLayerShape shape = {{40, 10, 50}, 6, 4, /*heads=*/0, /*needs_inputs=*/true};
  const auto flops = [](const std::vector<Operation>& pass) {
    double sum = 0;
    for (const Operation& o : pass) sum += o.flops.value();
    return sum;
  };
  LayerOperations ops = GraphLayerOperations(shape);
  for (const auto& pass : {ops.forward, ops.backward_input, ops.backward_weight}) {
    EXPECT_EQ(flops(pass), 2 * (10 + 40) * 6 * 4);
  }
  shape.in = 4;
  EXPECT_EQ(flops(GraphLayerOperations(shape).forward), 2 * 2 * 10 * 4 * 4);
  shape.in = 6;
  shape.heads = 2;
  ops = GraphLayerOperations(shape);
  EXPECT_EQ(flops(ops.forward), 2 * 40 * 6 * 4);
  shape.needs_inputs = false;
  EXPECT_EQ(flops(GraphLayerOperations(shape).backward_input), 0);
}

}  // namespace
}  // namespace pipelab
