// The paper side of stage costs. That bytes are exact is held beside the code that runs
// (pipelines/runtime/layer_stage_memory_test.cc).
#include "pipelines/cost/stage_costs.h"

#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "models/files/layer_list.h"
#include "models/specs/add_spec.h"
#include "models/specs/data_input_spec.h"
#include "models/specs/dense_spec.h"
#include "models/specs/element_loss_spec.h"
#include "models/zoo/gpt.h"
#include "pipelines/cluster/catalog.h"
#include "tools/base/status_matchers.h"

namespace pipelab {
namespace {

using ::testing::HasSubstr;

ModelGraph TinyGpt(bool tied) {
  GptConfig c;
  c.layers = 2;
  c.hidden = 8;
  c.heads = 2;
  c.tokens = 4;
  c.vocabulary = 10;
  c.tied_embeddings = tied;
  return *BuildGpt(c);
}

ModelPartition Ranges(const std::vector<int>& first_layers) {
  return *MakeRangePartition(TinyGpt(false), first_layers);
}

TEST(StageCosts, TimesAreFlopsAtTheRate) {
  StageCostOptions options;
  options.rate = FlopsPerSecond(1e9);  // a flop a nanosecond
  PIPELAB_ASSERT_OK_AND_ASSIGN(CostTable t,
                               ComputeStageCosts(TinyGpt(false), Ranges({0, 1, 3}), 3, options));
  ASSERT_EQ(t.stages.size(), 3);
  // The embedding multiplies nothing; m = 12 rows of 8.
  EXPECT_EQ(t.stages[0].forward.value(), 0);
  const int64_t attention = 12 * (8 * 8 * 8 + 4 * 4 * 8), mlp = 12 * 16 * 8 * 8;
  EXPECT_EQ(t.stages[1].forward.value(), attention + mlp);
  EXPECT_EQ(t.stages[1].recompute.value(), attention + mlp);
  EXPECT_EQ(t.stages[1].backward_input.value(),
            attention + mlp + 12 * 6 * 4 * 8);  // three more products of scores
  EXPECT_EQ(t.stages[1].backward_weight.value(), 12 * 8 * 8 * 8 + mlp);
  EXPECT_EQ(t.stages[1].step.value(), 13 * (12 * 8 * 8 + 13 * 8));
  EXPECT_EQ(t.stages[2].forward.value(), attention + mlp + 2 * 12 * 8 * 10);
  EXPECT_EQ(t.edge_bytes, (std::vector<Bytes>{Bytes(4 * 12 * 8), Bytes(4 * 12 * 8)}));
}

TEST(StageCosts, TimesAreThoseOfTheLayersOnAMachine) {
  PIPELAB_ASSERT_OK_AND_ASSIGN(const ClusterSpec cluster, LoadCluster("--cluster", "dgx-a100"));
  const ModelGraph graph = TinyGpt(false);
  StageCostOptions options;
  options.machine = Machine{cluster.device, NumberType::kBf16};
  options.optimizer_tensors = 1;
  PIPELAB_ASSERT_OK_AND_ASSIGN(CostTable t,
                               ComputeStageCosts(graph, Ranges({0, 1, 3}), 3, options));
  Nanoseconds forward, backward_input, backward_weight;
  for (int layer : {1, 2}) {
    PIPELAB_ASSERT_OK_AND_ASSIGN(const LayerTimes times,
                                 TimesOf(graph.layers[layer], *options.machine, 3));
    forward += times.forward;
    backward_input += times.backward_input;
    backward_weight += times.backward_weight;
  }
  EXPECT_EQ(t.stages[1].forward, forward);
  EXPECT_EQ(t.stages[1].recompute, forward);
  EXPECT_EQ(t.stages[1].backward_input, backward_input);
  EXPECT_EQ(t.stages[1].backward_weight, backward_weight);
  PIPELAB_ASSERT_OK_AND_ASSIGN(const Nanoseconds step,
                               StepTime(*options.machine, 12 * 8 * 8 + 13 * 8, 5));
  EXPECT_EQ(t.stages[1].step, step);
}

// data -> dense 1 -> dense 2; their sum; loss. Two take the output of dense 1.
ModelGraph Residual() {
  ModelGraph graph;
  graph.name = "residual";
  graph.layers.push_back(DataInputSpec({"data", "features", {64}}));
  for (int i : {1, 2}) {
    DenseSizes dense;
    dense.name = absl::StrCat("dense", i);
    dense.input = i - 1;
    dense.tokens = 1;
    dense.in = dense.out = 64;
    graph.layers.push_back(DenseSpec(dense));
  }
  graph.layers.push_back(AddSpec({"sum", {1, 2}, {1, 64}}));
  ElementLossSizes loss;
  loss.name = "loss";
  loss.input = 3;
  loss.width = 64;
  graph.layers.push_back(ElementLossSpec(loss));
  return graph;
}

TEST(StageCosts, WhatOurStagesDoBetweenLayersTakesTime) {
  PIPELAB_ASSERT_OK_AND_ASSIGN(const ClusterSpec cluster, LoadCluster("--cluster", "p40-pcie"));
  const ModelGraph graph = Residual();
  constexpr int64_t kSamples = 1000, kSize = kSamples * 64;
  StageCostOptions options;
  options.machine = Machine{cluster.device, NumberType::kFp32};
  const auto time = [&](const Operation& o) {
    return *OperationTime(options.machine->device, NumberType::kFp32, o);
  };
  // In one stage, or where dense 1 is in a stage of its own or alone with its second reader.
  for (const std::vector<int>& first : std::vector<std::vector<int>>{{0}, {0, 2}, {0, 3}}) {
    SCOPED_TRACE(testing::PrintToString(first));
    PIPELAB_ASSERT_OK_AND_ASSIGN(const ModelPartition partition, MakeRangePartition(graph, first));
    for (bool own : {false, true}) {
      options.machine->device.own_kernels = own;
      Nanoseconds forward, backward, expected_forward, expected_backward;
      PIPELAB_ASSERT_OK_AND_ASSIGN(const CostTable table,
                                   ComputeStageCosts(graph, partition, kSamples, options));
      for (const StageCost& cost : table.stages) {
        forward += cost.forward;
        backward += cost.backward_input;
      }
      for (const LayerSpec& layer : graph.layers) {
        PIPELAB_ASSERT_OK_AND_ASSIGN(const LayerTimes times,
                                     TimesOf(layer, *options.machine, kSamples));
        expected_forward += times.forward;
        expected_backward += times.backward_input;
      }
      if (own) expected_backward += time(ElementwiseOperation(3 * kSize));  // wherever they meet
      // It leaves, and stays for the second dense layer's weight gradient.
      const bool copies = own && first.size() == 2 && first[1] == 3;
      if (copies) expected_forward += time(ElementwiseOperation(2 * kSize));
      EXPECT_EQ(forward, expected_forward);
      EXPECT_EQ(backward, expected_backward);
    }
  }
  options.machine->device.own_kernels = false;
  PIPELAB_ASSERT_OK_AND_ASSIGN(const ModelPartition whole, MakeRangePartition(graph, {0}));
  const Nanoseconds step = ComputeStageCosts(graph, whole, 1, options)->stages[0].step;
  options.machine->device.own_kernels = true;  // clears the gradients in a pass of its own
  EXPECT_EQ(ComputeStageCosts(graph, whole, 1, options)->stages[0].step,
            step + time(ElementwiseOperation(2 * (64 * 64 + 64))));
}

// A layer that computes and one that was measured: the latter's time is the same everywhere.
TEST(StageCosts, MeasuredTimesAreTheSameEverywhere) {
  LayerList list;
  list.layers.resize(2);
  list.layers[0].name = "computed";
  list.layers[0].costs = PassCosts<Flops>{{Flops(0), Flops(1000)}, {Flops(0), Flops(500)}, {}};
  list.layers[0].output = Bytes(0);
  list.layers[1].name = "measured";
  list.layers[1].inputs = {"computed"};
  list.layers[1].costs = PassCosts<Nanoseconds>{{Nanoseconds(7), Nanoseconds(10)},
                                                {Nanoseconds(0), Nanoseconds(20)},
                                                {Nanoseconds(0), Nanoseconds(30)}};
  PIPELAB_ASSERT_OK_AND_ASSIGN(const ModelGraph graph, MakeGraph(list, "list"));
  PIPELAB_ASSERT_OK_AND_ASSIGN(const ModelPartition one, MakeRangePartition(graph, {0}));
  PIPELAB_ASSERT_OK_AND_ASSIGN(const ModelPartition two, MakeRangePartition(graph, {0, 1}));
  StageCostOptions options;
  options.rate = FlopsPerSecond(1e9);  // a flop a nanosecond
  PIPELAB_ASSERT_OK_AND_ASSIGN(const CostTable plain, ComputeStageCosts(graph, one, 3, options));
  EXPECT_EQ(plain.stages[0].forward, Nanoseconds(3000 + 37));
  EXPECT_EQ(plain.stages[0].backward_input, Nanoseconds(1500 + 60));
  EXPECT_EQ(plain.stages[0].backward_weight, Nanoseconds(90));
  for (const char* name : {"dgx-a100", "p100-pcie"}) {
    PIPELAB_ASSERT_OK_AND_ASSIGN(const ClusterSpec cluster, LoadCluster("--cluster", name));
    options.machine = Machine{cluster.device, NumberType::kFp32};
    PIPELAB_ASSERT_OK_AND_ASSIGN(const CostTable t, ComputeStageCosts(graph, two, 3, options));
    EXPECT_EQ(t.stages[1].forward, Nanoseconds(37));
    EXPECT_EQ(t.stages[1].backward_input, Nanoseconds(60));
    EXPECT_EQ(t.stages[1].backward_weight, Nanoseconds(90));
  }
}

TEST(StageCosts, ActivationsHaveTheMachinesNumbers) {
  PIPELAB_ASSERT_OK_AND_ASSIGN(const ClusterSpec cluster, LoadCluster("--cluster", "dgx-a100"));
  const auto costs_with = [&](NumberType type) {
    StageCostOptions options;
    options.machine = Machine{cluster.device, type};
    return *ComputeStageCosts(TinyGpt(false), Ranges({0, 2}), 2, options);
  };
  const CostTable four = costs_with(NumberType::kTf32), two = costs_with(NumberType::kBf16);
  const CostTable plain = *ComputeStageCosts(TinyGpt(false), Ranges({0, 2}), 2, {});
  for (int s = 0; s < 2; ++s) {
    const StageMemory &m4 = four.stages[s].memory, &m2 = two.stages[s].memory;
    EXPECT_EQ(m4.kept, m2.kept * 2);
    EXPECT_EQ(m4.forward_peak, m2.forward_peak * 2);
    EXPECT_EQ(m4.backward_peak, m2.backward_peak * 2);
    EXPECT_EQ(m4.kept_for_weight, m2.kept_for_weight * 2);
    EXPECT_EQ(m4.state, m2.state);
    EXPECT_EQ(m4.kept, plain.stages[s].memory.kept);
  }
  EXPECT_EQ(four.edge_bytes[0], two.edge_bytes[0] * 2);
}

// Attention, then MLP, whose input stays for its backward: while the first runs nothing is kept
// yet, while the second runs what the first left, and in the end all.
TEST(StageCosts, OfAPeakWhatIsKept) {
  const ModelGraph graph = TinyGpt(false);
  const LayerCosts first = graph.layers[1].costs(3), second = graph.layers[2].costs(3);
  const Bytes between = first.kept + first.output, end = between + second.kept;
  const std::vector<std::pair<Bytes, Bytes>> reached = {{first.forward_peak, Bytes(0)},
                                                        {between + second.forward_peak, between},
                                                        {end + second.output, end}};
  std::pair<Bytes, Bytes> forward, recompute;
  for (size_t i = 0; i < reached.size(); ++i) {
    if (reached[i].first >= forward.first) forward = reached[i];
    if (i < 2 && reached[i].first >= recompute.first) recompute = reached[i];
  }
  const StageMemory m = ComputeStageMemory(graph, Ranges({0, 1, 3}), 1, 3);
  EXPECT_EQ(m.forward_peak, forward.first);
  EXPECT_EQ(m.forward_peak_kept, forward.second);
  EXPECT_EQ(m.recompute_peak, recompute.first);
  EXPECT_EQ(m.recompute_peak_kept, recompute.second);
  EXPECT_GT(m.forward_peak_kept, Bytes(0));
}

TEST(StageCosts, StateCountsATieOnceButForItsGradients) {
  const int64_t table = 10 * 8, all = TinyGpt(true).num_parameters();
  EXPECT_EQ(ComputeStageMemory(TinyGpt(true), *MakeRangePartition(TinyGpt(true), {0}), 0, 1).state,
            Bytes(4) * (4 * all + table));
  PIPELAB_ASSERT_OK_AND_ASSIGN(
      CostTable t,
      ComputeStageCosts(TinyGpt(true), *MakeRangePartition(TinyGpt(true), {0, 3}), 1, {}));
  EXPECT_EQ(t.stages[0].memory.state + t.stages[1].memory.state, Bytes(4) * 4 * (all + table));
  EXPECT_EQ(ComputeStageMemory(TinyGpt(false), Ranges({0}), 0, 1).state,
            Bytes(4) * 4 * (all + table));
}

TEST(StageCosts, RefusesSizesWithoutMeaning) {
  EXPECT_THAT(
      ComputeStageCosts(TinyGpt(false), Ranges({0, 2}), 0, {}),
      StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("micro-batches of 0 samples")));
  StageCostOptions options;
  options.rate = FlopsPerSecond(0);
  EXPECT_THAT(ComputeStageCosts(TinyGpt(false), Ranges({0}), 1, options),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("rate of 0")));
}

}  // namespace
}  // namespace pipelab
