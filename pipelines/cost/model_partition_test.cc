#include "pipelines/cost/model_partition.h"

#include <string>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "models/zoo/gpt.h"
#include "pipelines/cost/stage_plan.h"
#include "tools/base/status_matchers.h"

namespace pipelab {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::UnorderedElementsAre;

void Add(ModelGraph* graph, std::vector<int> inputs, InputUse use = InputUse::kWeightGradient) {
  LayerSpec layer;
  layer.name = std::string(1, static_cast<char>('a' + graph->layers.size()));
  layer.kind = "any";
  layer.inputs = std::move(inputs);
  layer.input_shapes.assign(layer.inputs.size(), {4});
  layer.output_shape = {4};
  layer.input_use = use;
  layer.costs = [](int64_t) { return LayerCosts{}; };
  layer.operations = [](int64_t, TokenSlice) { return LayerOperations{}; };
  graph->layers.push_back(std::move(layer));
}

//   a - b - d - f     and a - f, a skip that passes by both branches
//     \ c - e /
ModelGraph Branched() {
  ModelGraph g;
  g.name = "branched";
  Add(&g, {});                             // a
  Add(&g, {0});                            // b
  Add(&g, {0}, InputUse::kForward);        // c
  Add(&g, {1}, InputUse::kInputGradient);  // d
  Add(&g, {2});                            // e
  Add(&g, {3, 4, 0}, InputUse::kForward);  // f
  g.layers.back().output_shape.clear();
  return g;
}

std::vector<std::pair<int, int>> Edges(const ModelPartition& p) {
  std::vector<std::pair<int, int>> edges;
  for (const StageGraph::Edge& e : p.stages.edges) edges.emplace_back(e.from, e.to);
  return edges;
}

TEST(MakePartition, HasAnEdgeForEachLayerAndConsumerStage) {
  const ModelGraph g = Branched();
  ASSERT_THAT(Validate(g), IsOk());
  PIPELAB_ASSERT_OK_AND_ASSIGN(const ModelPartition p, MakePartition(g, {0, 1, 2, 1, 2, 3}));
  using E = std::pair<int, int>;
  EXPECT_THAT(Edges(p), ElementsAre(E(0, 1), E(0, 2), E(0, 3), E(1, 3), E(2, 3)));
  EXPECT_THAT(p.edge_layer, ElementsAre(0, 0, 0, 3, 4));
  EXPECT_THAT(p.layers,
              ElementsAre(ElementsAre(0), ElementsAre(1, 3), ElementsAre(2, 4), ElementsAre(5)));
  EXPECT_EQ(p.loss_stage, 3);
  // Two consumers in one stage share an edge; two layers of one stage have an edge each.
  PIPELAB_ASSERT_OK_AND_ASSIGN(const ModelPartition two, MakePartition(g, {0, 0, 0, 1, 1, 1}));
  EXPECT_THAT(Edges(two), ElementsAre(E(0, 1), E(0, 1), E(0, 1)));
  EXPECT_THAT(two.edge_layer, ElementsAre(0, 1, 2));
}

TEST(MakePartition, OfAChainIsTheChain) {
  GptConfig c;
  c.layers = 2;
  c.hidden = 8;
  c.heads = 2;
  c.tokens = 4;
  c.vocabulary = 10;
  PIPELAB_ASSERT_OK_AND_ASSIGN(const ModelGraph gpt, BuildGpt(c));
  PIPELAB_ASSERT_OK_AND_ASSIGN(const ModelPartition p, MakeRangePartition(gpt, {0, 1, 4}));
  EXPECT_TRUE(p.stages.IsChain());
  EXPECT_THAT(p.edge_layer, ElementsAre(0, 3));
  EXPECT_THAT(p.stage_of_layer, ElementsAre(0, 1, 1, 1, 2, 2));
  int stage = -1;
  PIPELAB_ASSERT_OK_AND_ASSIGN(const ModelPartition range, MakeStageOfRange(gpt, 2, 4, &stage));
  EXPECT_EQ(stage, 1);
  EXPECT_THAT(range.layers[1], ElementsAre(2, 3));
}

TEST(MakePartition, NamesTheMistake) {
  const ModelGraph g = Branched();
  const auto expect = [&](std::vector<int> stages, const char* what) {
    EXPECT_THAT(MakePartition(g, std::move(stages)),
                StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr(what)));
  };
  expect({0, 0}, "each of the 6 layers, not of 2");
  expect({0, 1, 2, 0, 2, 3}, "layer \"d\" is in stage 0 and takes \"b\" of stage 1");
  expect({0, 0, 0, 2, 2, 2}, "stage 1 of 3 has no layers");
  expect({0, 0, 0, 0, 0, 6}, "layer \"f\" is in stage 6");
  expect({0, 0, 0, 0, 0, -1}, "layer \"f\" is in stage -1");
  const auto ranges = [&](std::vector<int> first_layers, const char* what) {
    EXPECT_THAT(MakeRangePartition(g, first_layers),
                StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr(what)));
  };
  ranges({}, "begins with layer 0");
  ranges({1, 2}, "begins with layer 0");
  ranges({0, 2, 2}, "stage 1 has no layers");
  ranges({0, 6}, "stage 1 has no layers");
  ranges({0, 8, 3}, "stage 0 has no layers");
}

// Four consumers: ((e + d) + c) + b without stages.
TEST(SumsInLayerOrder, SaysWhetherStagesBracketOtherwise) {
  ModelGraph g;
  g.name = "fan";
  Add(&g, {});
  for (int i = 0; i < 4; ++i) Add(&g, {0});
  Add(&g, {1, 2, 3, 4});
  g.layers.back().output_shape.clear();
  const auto keeps = [&](std::vector<int> stages) {
    return SumsInLayerOrder(g, *MakePartition(g, std::move(stages)));
  };
  EXPECT_TRUE(keeps({0, 0, 0, 0, 0, 0}));
  EXPECT_TRUE(keeps({0, 1, 2, 3, 4, 5}));
  EXPECT_TRUE(keeps({0, 0, 0, 1, 1, 1}));   // (e + d) comes back, then c, b
  EXPECT_FALSE(keeps({0, 1, 1, 2, 2, 2}));  // (e + d) + (c + b)
  EXPECT_FALSE(keeps({0, 2, 1, 2, 1, 2}));
  EXPECT_FALSE(keeps({0, 1, 0, 0, 0, 1}));  // b first
  EXPECT_TRUE(SumsInLayerOrder(Branched(), *MakePartition(Branched(), {0, 0, 0, 0, 0, 0})));
}

TEST(StagePlan, HoldsEachValueUntilItsLastUse) {
  const ModelGraph g = Branched();
  const StagePlan all = MakeStagePlan(g, *MakePartition(g, {0, 0, 0, 0, 0, 0}), 0);
  EXPECT_EQ(all.num_in_edges, 0);
  EXPECT_THAT(all.inputs[5], ElementsAre(3, 4, 0));
  // d's and e's outputs go to f alone, whose backward does not read them; c's a is b's as well.
  EXPECT_THAT(all.released(StagePass::kForward)[5], ElementsAre(3, 4));
  EXPECT_THAT(all.released(StagePass::kForwardDrop)[3], ElementsAre(1));
  EXPECT_THAT(all.released(StagePass::kForwardDrop)[5], ElementsAre(0, 3, 4));
  EXPECT_THAT(all.released(StagePass::kBackward)[4], ElementsAre(2));
  EXPECT_THAT(all.released(StagePass::kBackward)[1], ElementsAre(0));
  EXPECT_THAT(all.released(StagePass::kBackwardInput)[3], ElementsAre(1));
  EXPECT_THAT(all.released(StagePass::kBackwardWeight)[3], IsEmpty());
  EXPECT_THAT(all.released(StagePass::kBackwardWeight)[1], ElementsAre(0));
}

TEST(StagePlan, CopiesWhatLeavesSeveralTimesOrStays) {
  const ModelGraph g = Branched();
  const ModelPartition p = *MakePartition(g, {0, 0, 1, 2, 1, 3});
  // a is b's input and leaves to the stages 1 and 3; b's output leaves to stage 2 only.
  const StagePlan first = MakeStagePlan(g, p, 0);
  EXPECT_THAT(first.out_values, ElementsAre(0, 0, 1));
  EXPECT_EQ(first.values[0].copies(/*drop=*/false), 2);
  EXPECT_EQ(first.values[0].copies(/*drop=*/true), 1);
  EXPECT_EQ(first.values[1].copies(false), 0);
  EXPECT_THAT(first.released(StagePass::kRecompute)[1], ElementsAre(1));
  // The loss's stage lets go of in-edges that it reads in the forward only.
  const StagePlan last = MakeStagePlan(g, p, 3);
  EXPECT_EQ(last.num_in_edges, 3);
  EXPECT_THAT(last.released(StagePass::kForward)[0], UnorderedElementsAre(0, 1, 2));
  EXPECT_THAT(last.released(StagePass::kForwardDrop)[0], IsEmpty());
}

}  // namespace
}  // namespace pipelab
