#include "pipelines/graphs/graph_partition.h"

#include <algorithm>
#include <cstdint>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "models/data/graph_store.h"
#include "models/data/split_sampler.h"
#include "tools/base/status_matchers.h"

namespace pipelab {
namespace {

CsrGraph WithGroups(int32_t vertices, int classes, double alike, uint64_t seed) {
  GeneratedGraph shape;
  shape.degrees_V = PowerLawDegrees(vertices, 2.0, 4, 200, seed);
  shape.classes = classes;
  shape.alike = alike;
  shape.width = 0;
  return GenerateGraph(shape, seed).graph;
}

// An edge's ends are in one of four parts each, by chance: three of four edges cross.
TEST(GraphPartition, RandomPartsCutThreeOfFourEdges) {
  const CsrGraph graph = WithGroups(20000, 10, 0.5, 1);
  PIPELAB_ASSERT_OK_AND_ASSIGN(const VertexOwners owners,
                               MakePartition(PartitionMethod::kRandom, graph, {}, 4, 7));
  const PartitionQuality quality = QualityOf(graph, owners, 4);
  EXPECT_NEAR(quality.cut, 0.75, 0.01);
  EXPECT_LT(quality.vertices, 1.03);
}

// Four rings side by side: nothing need be cut.
TEST(GraphPartition, FindsWhatIsApart) {
  std::vector<std::pair<int32_t, int32_t>> edges;
  for (int32_t ring = 0; ring < 4; ++ring) {
    for (int32_t i = 0; i < 100; ++i) {
      edges.push_back({ring + 4 * i, ring + 4 * ((i + 1) % 100)});
      edges.push_back({ring + 4 * i, ring + 4 * ((i + 2) % 100)});
    }
  }
  PIPELAB_ASSERT_OK_AND_ASSIGN(const CsrGraph graph, CsrGraph::FromEdges(400, edges));
  PIPELAB_ASSERT_OK_AND_ASSIGN(const VertexOwners owners, PartitionGraph(graph, {}, 4, 1));
  const PartitionQuality quality = QualityOf(graph, owners, 4);
  EXPECT_EQ(quality.cut, 0);
  EXPECT_THAT(quality.vertices_P, testing::Each(100));
}

TEST(GraphPartition, SameSeedSameParts) {
  const CsrGraph graph = WithGroups(4000, 16, 0.8, 2);
  for (uint64_t seed : {1, 2}) {
    PIPELAB_ASSERT_OK_AND_ASSIGN(const VertexOwners a, PartitionGraph(graph, {}, 4, seed));
    PIPELAB_ASSERT_OK_AND_ASSIGN(const VertexOwners b, PartitionGraph(graph, {}, 4, seed));
    EXPECT_EQ(a, b);
  }
}

// By edges, parts have as many edges and not as many vertices; both within METIS's 1.03.
TEST(GraphPartition, BalancesWhatItIsTold) {
  const CsrGraph graph = WithGroups(20000, 32, 0.8, 3);
  PIPELAB_ASSERT_OK_AND_ASSIGN(const VertexOwners by_vertices,
                               MakePartition(PartitionMethod::kVertices, graph, {}, 4, 1));
  PIPELAB_ASSERT_OK_AND_ASSIGN(const VertexOwners by_edges,
                               MakePartition(PartitionMethod::kEdges, graph, {}, 4, 1));
  EXPECT_LE(QualityOf(graph, by_vertices, 4).vertices, 1.031);
  EXPECT_LE(QualityOf(graph, by_edges, 4).edges, 1.031);
  EXPECT_LT(QualityOf(graph, by_vertices, 4).cut, 0.5);
}

// Lists that have each edge once, from the ring's vertex to the next: as the ring of both ways.
TEST(GraphPartition, TakesDirectedGraphs) {
  CsrGraph ring;
  for (int32_t v = 0; v < 64; ++v) {
    ring.neighbours_E.push_back((v + 1) % 64);
    ring.offsets_V1.push_back(v + 1);
  }
  PIPELAB_ASSERT_OK_AND_ASSIGN(const VertexOwners owners, PartitionGraph(ring, {}, 2, 1));
  EXPECT_EQ(QualityOf(ring, owners, 2).cut, 2.0 / 64);
}

// A star whose middle is the only target, all neighbours: each epoch the middle draws in both hops,
// the leaves in the second one, and each edge is drawn once from the middle, twice in all epochs'
// second hops.
TEST(GraphPartition, PreSamplesCountDraws) {
  PIPELAB_ASSERT_OK_AND_ASSIGN(const CsrGraph star,
                               CsrGraph::FromEdges(5, {{0, 1}, {0, 2}, {0, 3}}));
  PreSampling sampling;
  sampling.train = {0};
  sampling.fanouts = {9, 9};
  sampling.epochs = 3;
  PIPELAB_ASSERT_OK_AND_ASSIGN(const PreSamples counts, SampleBefore(star, sampling));
  EXPECT_THAT(counts.draws_V, testing::ElementsAre(6, 3, 3, 3, 0));
  EXPECT_THAT(counts.inputs_V, testing::ElementsAre(3, 3, 3, 3, 0));
  const GraphWeights weights = WeightsOf(star, counts);
  EXPECT_THAT(weights.edges_E, testing::ElementsAre(6, 6, 6, 3, 3, 3));  // from the middle, to it
  EXPECT_THAT(weights.vertices_V, testing::ElementsAre(7, 4, 4, 4, 1));
}

// Only some vertices are ever drawn from: by pre-samples the load of these is equal.
TEST(GraphPartition, PreSamplesBalanceWhatIsDrawn) {
  const CsrGraph graph = WithGroups(20000, 32, 0.8, 4);
  PreSampling sampling;
  for (int32_t v = 0; v < 20000; v += 16) sampling.train.push_back(v);  // of two classes
  sampling.fanouts = {3, 3};
  sampling.batch = 100;
  PIPELAB_ASSERT_OK_AND_ASSIGN(const PreSamples counts, SampleBefore(graph, sampling));
  const auto load = [&](PartitionMethod method) {
    const VertexOwners owners = MakePartition(method, graph, counts, 4, 1).value();
    std::vector<int64_t> draws(4);
    for (size_t v = 0; v < owners.size(); ++v) draws[owners[v]] += counts.draws_V[v];
    return *std::max_element(draws.begin(), draws.end());
  };
  EXPECT_LT(load(PartitionMethod::kPreSamples), load(PartitionMethod::kVertices));
}

TEST(GraphPartition, Errors) {
  const CsrGraph graph = WithGroups(200, 2, 0.5, 1);
  EXPECT_THAT(PartitionGraph(graph, {}, 257, 1).status().message(), "parts=257: must be 1 to 256");
  EXPECT_FALSE(PartitionGraph(graph, {{1, 2}, {}}, 2, 1).ok());
  EXPECT_FALSE(MakePartition(PartitionMethod::kPreSamples, graph, {}, 2, 1).ok());
  EXPECT_THAT(FindPartitionMethod("edge").status().message(), testing::HasSubstr("edges"));
  EXPECT_FALSE(SampleBefore(graph, PreSampling()).ok());
}

}  // namespace
}  // namespace pipelab
