#include <algorithm>
#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "pipelines/schedules/scheme_testing.h"

namespace pipelab {
namespace {

SchemeParams Params(int micro_batches, StageGraph stages) {
  SchemeParams params{stages.num_stages(), micro_batches};
  params.stages = std::move(stages);
  return params;
}

// `branches` branches of `length` stages each, and a stage that joins them.
StageGraph Branches(int branches, int length) {
  std::vector<StageGraph::Edge> edges;
  const int join = branches * length;
  for (int b = 0; b < branches; ++b) {
    for (int i = 0; i < length; ++i) {
      const int stage = b * length + i;
      edges.push_back({stage, i + 1 < length ? stage + 1 : join});
    }
  }
  return StageGraph::FromEdges(join + 1, std::move(edges));
}

// Two branches of two stages and a join: as deep as a chain of three.
TEST(Graph, TwoBranches) {
  EXPECT_EQ(Picture("graph", Params(4, Branches(2, 2))), R"(
0: 0F0 0F1 0F2 0B0 0F3 0B1 0B2 0B3
1: 1F0 1F1 1B0 1F2 1B1 1F3 1B2 1B3
2: 2F0 2F1 2F2 2B0 2F3 2B1 2B2 2B3
3: 3F0 3F1 3B0 3F2 3B1 3F3 3B2 3B3
4: 4F0 4B0 4F1 4B1 4F2 4B2 4F3 4B3
)");
  EXPECT_EQ(Timeline(MakeOrDie("graph", Params(4, Branches(2, 2)))), R"(
 0 1 2    '0 3'1  '2  '3|
   0 1  '0 2'1 3'2  '3  |
 0 1 2    '0 3'1  '2  '3|
   0 1  '0 2'1 3'2  '3  |
     0'0 1'1 2'2 3'3    |
)");
}

TEST(Graph, OfAChainIs1F1B) {
  for (int p = 1; p <= 9; ++p) {
    for (int m = 1; m <= 3 * p; ++m) {
      const Schedule chain = MakeOrDie("1f1b", {p, m});
      const Schedule graph = MakeOrDie("graph", {p, m});
      ASSERT_EQ(graph.order, chain.order) << p << " " << m;
      ASSERT_EQ(graph.placement.groups, chain.placement.groups);
      ASSERT_TRUE(graph.stages.IsChain());
      ASSERT_EQ(MakeOrDie("graph", Params(m, StageGraph::Chain(p))).order, chain.order);
    }
  }
}

// Depth D = longest path: the bubble of a chain of D stages, and min(M, stages to the end) in
// flight.
TEST(Graph, ClosedForms) {
  for (int branches = 1; branches <= 4; ++branches) {
    for (int length = 1; length <= 4; ++length) {
      const int depth = length + 1;
      for (int m = 1; m <= 3 * depth; ++m) {
        const UnitFigures f = Figures(MakeOrDie("graph", Params(m, Branches(branches, length))));
        ASSERT_EQ(f.busy, 3 * m);
        ASSERT_EQ(f.idle, 3 * (depth - 1)) << branches << " " << length << " " << m;
        for (int b = 0; b < branches; ++b) {
          for (int i = 0; i < length; ++i) {
            ASSERT_EQ(f.peak[b * length + i], std::min(m, depth - i));
          }
        }
      }
    }
  }
}

TEST(Graph, SharesAStageByRows) {
  SchemeParams params{3, 2};
  params.devices_of_stage = {{0, 2}, {1}};
  EXPECT_EQ(Picture("graph", params), R"(
0: 0F0 0F1 0B0 0B1
1: 1F0 1B0 1F1 1B1
2: 0F0 0F1 0B0 0B1
)");
}

TEST(Graph, Refuses) {
  EXPECT_EQ(Refusal("graph", {2, 2, 3}),
            "--scheme=graph --chunks=3: this scheme holds one stage a device; use --chunks=1");
  SchemeParams params = Params(2, Branches(2, 1));
  params.devices = 2;
  EXPECT_EQ(Refusal("graph", params),
            "--scheme=graph --devices=2: the stage graph has 3 stages, one a device; use "
            "--devices=3");
  EXPECT_EQ(Refusal("1f1b", Params(2, Branches(2, 1))), "--scheme=1f1b --edges: only for graph");
  EXPECT_EQ(Refusal("graph", Params(2, StageGraph::FromEdges(2, {{0, 1}, {1, 0}}))),
            "--scheme=graph --edges: the stage graph has a cycle");
  params = SchemeParams{2, 2};
  params.devices_of_stage = {{0}, {0, 1}};
  EXPECT_EQ(Refusal("graph", params),
            "--scheme=graph --devices=2: device 0 of a stage's group does not exist, or holds "
            "another stage too");
}

}  // namespace
}  // namespace pipelab
