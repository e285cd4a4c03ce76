#include "models/data/split_sampler.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "models/data/example_order.h"
#include "tools/base/rng.h"
#include "tools/base/status_matchers.h"

namespace pipelab {
namespace {

CsrGraph SmallGraph(int32_t vertices, uint64_t seed) {
  GeneratedGraph shape;
  shape.degrees_V = PowerLawDegrees(vertices, 1.8, 1, 60, seed);
  shape.width = 0;
  return GenerateGraph(shape, seed).graph;
}

VertexOwners RandomOwners(int32_t vertices, int members, uint64_t seed) {
  const CounterRng rng(seed, "test/owners");
  VertexOwners owners(vertices);
  for (int32_t v = 0; v < vertices; ++v) owners[v] = static_cast<uint8_t>(rng.Below(v, members));
  return owners;
}

std::vector<int32_t> Batch(int32_t vertices, int size, int64_t step) {
  const ExampleOrder order(vertices, size, /*seed=*/5, "test/batch");
  std::vector<int32_t> batch;
  for (int i = 0; i < size; ++i) batch.push_back(static_cast<int32_t>(order.ExampleAt(step, i)));
  return batch;
}

using EdgesOfVertex = std::map<int32_t, std::vector<int32_t>>;

// A vertex's neighbours in their order, of one block.
void AddEdges(const GraphBlock& block, EdgesOfVertex* all) {
  for (int32_t i = 0; i < block.num_targets; ++i) {
    std::vector<int32_t> ids;
    for (int32_t e = block.offsets[i]; e < block.offsets[i + 1]; ++e) {
      ids.push_back(block.sources[block.edges[e]]);
    }
    EXPECT_TRUE(all->emplace(block.sources[i], std::move(ids)).second)
        << "vertex " << block.sources[i] << " is computed twice";
  }
}

// Rows of own vertices, sent round as shuffles say, are those of the sources.
void CheckShuffle(const std::vector<SplitSample>& samples, size_t b) {
  const size_t n = samples.size();
  const auto own = [&](size_t m) {
    const auto& ids = b == 0 ? samples[m].inputs : samples[m].blocks[b - 1].block.sources;
    const size_t count = b == 0 ? ids.size() : samples[m].blocks[b - 1].block.num_targets;
    return std::vector<int32_t>(ids.begin(), ids.begin() + count);
  };
  std::vector<std::vector<int32_t>> came(n);
  for (size_t m = 0; m < n; ++m) {
    const std::vector<int32_t> rows = own(m);
    came[m].assign(rows.begin(), rows.begin() + samples[m].blocks[b].shuffle.own);
  }
  for (size_t from = 0; from < n; ++from) {
    const std::vector<int32_t> rows = own(from);
    const RowShuffle& s = samples[from].blocks[b].shuffle;
    size_t next = 0;
    for (size_t to = 0; to < n; ++to) {
      ASSERT_EQ(s.to[to], samples[to].blocks[b].shuffle.from[from]);
      for (int64_t k = 0; k < s.to[to]; ++k) came[to].push_back(rows.at(s.sent.at(next++)));
    }
    ASSERT_EQ(next, s.sent.size());
  }
  for (size_t m = 0; m < n; ++m) {
    const SplitBlock& split = samples[m].blocks[b];
    ASSERT_EQ(came[m], split.block.sources);
    ASSERT_EQ(split.shuffle.to[m] + split.shuffle.from[m], 0);
  }
}

// 1,000 batches in all, over graphs, owners and numbers of members.
TEST(SplitSampler, AllMembersTogetherAreOneDevicesSample) {
  const std::vector<int> fanouts = {5, 4, 3};
  int batches = 0;
  for (uint64_t seed = 1; seed <= 5; ++seed) {
    const int32_t vertices = 400 + 150 * static_cast<int32_t>(seed);
    const CsrGraph graph = SmallGraph(vertices, seed);
    NeighbourSampler one(&graph, fanouts, seed);
    for (int members : {1, 2, 4, 8}) {
      const VertexOwners owners = RandomOwners(vertices, members, seed);
      std::vector<SplitMember> group = MakeSplitMembers(&graph, &owners, members, fanouts, seed);
      for (int64_t step = 0; step < 50; ++step, ++batches) {
        const std::vector<int32_t> batch = Batch(vertices, 24, step);
        const GraphSample whole = one.Sample(step, batch);
        const std::vector<SplitSample> parts = SampleOfAll(step, batch, &group);
        std::vector<int32_t> inputs;
        for (int m = 0; m < members; ++m) {
          for (int32_t v : parts[m].inputs) ASSERT_EQ(owners[v], m);
          inputs.insert(inputs.end(), parts[m].inputs.begin(), parts[m].inputs.end());
        }
        std::vector<int32_t> sources = whole.blocks[0].sources;
        std::sort(inputs.begin(), inputs.end());
        std::sort(sources.begin(), sources.end());
        ASSERT_EQ(inputs, sources);
        for (size_t b = 0; b < whole.blocks.size(); ++b) {
          EdgesOfVertex of_one, of_all;
          AddEdges(whole.blocks[b], &of_one);
          for (const SplitSample& part : parts) AddEdges(part.blocks[b].block, &of_all);
          ASSERT_EQ(of_one, of_all) << "step " << step << " block " << b;
          CheckShuffle(parts, b);
        }
      }
    }
  }
  EXPECT_EQ(batches, 1000);
}

// A path 0 - 1 - 2 - 3, halves owned by two members, all neighbours: by hand.
TEST(SplitSampler, Path) {
  PIPELAB_ASSERT_OK_AND_ASSIGN(const CsrGraph graph,
                               CsrGraph::FromEdges(4, {{0, 1}, {1, 2}, {2, 3}}));
  const VertexOwners owners = {0, 0, 1, 1};
  std::vector<SplitMember> group = MakeSplitMembers(&graph, &owners, 2, {9, 9}, 1);
  const std::vector<SplitSample> samples = SampleOfAll(0, {1}, &group);
  EXPECT_EQ(samples[0].blocks[1].block.sources, (std::vector<int32_t>{1, 0, 2}));
  EXPECT_EQ(samples[0].asked, (std::vector<int64_t>{1, 1}));
  EXPECT_EQ(samples[0].inputs, (std::vector<int32_t>{1, 0}));
  // The second hop: member 1 computes vertex 2 from 1 and 3.
  EXPECT_EQ(samples[1].blocks[0].block.sources, (std::vector<int32_t>{2, 3, 1}));
  EXPECT_EQ(samples[1].blocks[0].shuffle.came_rows(), 1);
  EXPECT_EQ(samples[1].inputs, (std::vector<int32_t>{2, 3}));
  EXPECT_EQ(samples[1].blocks[1].block.num_targets, 0);
}

TEST(SplitSampler, RefusesVerticesOfOthers) {
  PIPELAB_ASSERT_OK_AND_ASSIGN(const CsrGraph graph, CsrGraph::FromEdges(3, {{0, 1}, {1, 2}}));
  const VertexOwners owners = {0, 0, 1};
  for (int32_t wrong : {2, -1, 3}) {
    SplitMember member(&graph, &owners, 0, 2, {2}, 1);
    member.Begin(0, {0});
    member.Draw();
    EXPECT_THAT(member.Receive({{}, {wrong}}),
                StatusIs(absl::StatusCode::kInvalidArgument, testing::HasSubstr("member 1 asks")));
  }
}

}  // namespace
}  // namespace pipelab
