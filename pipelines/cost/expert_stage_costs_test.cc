// Stage costs of one of the devices that divide a layer's experts.
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "models/graph/expert_parallel.h"
#include "models/specs/kept_activations.h"
#include "models/specs/megatron_kernels.h"
#include "models/zoo/gpt.h"
#include "pipelines/cost/stage_costs.h"
#include "pipelines/cost/state_walk.h"
#include "tools/base/status_matchers.h"

namespace pipelab {
namespace {

using testing::HasSubstr;

constexpr int64_t kExpertSamples = 2, kExpertTokens = 64, kExpertHidden = 32, kInner = 48,
                  kExperts = 8, kChosen = 2;
constexpr int64_t kRows = kExpertSamples * kExpertTokens;

ModelGraph ExpertGpt(int64_t shared = 0) {
  GptConfig c = LlamaConfig(/*layers=*/1, kExpertHidden, /*heads=*/4, kInner, kExpertTokens,
                            /*vocabulary=*/40);
  c.experts = {kExperts, kChosen, shared};
  return *BuildGpt(c);
}

// 1 us a step of a ring, 2 us an all-to-all, a byte a nanosecond.
StageCostOptions ExpertOptions(TensorParallel split) {
  StageCostOptions options;
  options.rate = FlopsPerSecond(1e9);
  const PathCost hop = {Microseconds(1), BytesPerSecond(1e9)};
  options.tensor = {split, hop, hop, {Microseconds(2), BytesPerSecond(1e9)}};
  return options;
}

TensorParallel Experts(int64_t experts, int64_t tensor = 1, bool sequence = false,
                       bool whole = false) {
  return {tensor, sequence, 1, experts, whole};
}

// Embedding; attention; experts; head.
CostTable ExpertTable(const ModelGraph& graph, TensorParallel split) {
  return *ComputeStageCosts(graph, *MakeRangePartition(graph, {0, 1, 2, 3}), kExpertSamples,
                            ExpertOptions(split));
}

// As much work, four all-to-alls more, and a part of the experts.
TEST(ExpertStageCosts, RowsGoAndComeBack) {
  for (const int64_t shared : {0, 1}) {
    const ModelGraph graph = ExpertGpt(shared);
    const CostTable whole = ExpertTable(graph, Experts(1));
    for (const int64_t e : {2, 4, 8}) {
      const CostTable part = ExpertTable(graph, Experts(e));
      for (int stage = 0; stage < 4; ++stage) {
        SCOPED_TRACE(stage);
        const StageCost &w = whole.stages[stage], &p = part.stages[stage];
        const int64_t two = stage == 2 ? 2 : 0, rows = 4 * kRows * kChosen * kExpertHidden;
        // And how many rows come, and weights of rows, whose gradients come back.
        const int64_t weights = two / 2 * 4 * kRows * kChosen, counts = two / 2 * 4 * kExperts;
        EXPECT_EQ(p.forward.value() - w.forward.value(),
                  two * (2000 + rows) + two * 2000 + weights + counts);
        EXPECT_EQ(p.backward_input.value() - w.backward_input.value(),
                  two * (2000 + rows) + two / 2 * 2000 + weights);
        EXPECT_EQ(p.backward_weight, w.backward_weight);
        EXPECT_EQ(p.tensor_traffic.forward, Bytes((two * rows + weights + counts) / e * (e - 1)));
        EXPECT_EQ(p.tensor_traffic.backward_input, Bytes((two * rows + weights) / e * (e - 1)));
        const int64_t experts = stage == 2 ? 4 * kExperts * 3 * kExpertHidden * kInner : 0;
        EXPECT_EQ(p.memory.expert_gradients, Bytes(experts / e));
        EXPECT_EQ(w.memory.expert_gradients, Bytes(0));
        EXPECT_EQ(p.memory.gradients + Bytes(experts), w.memory.gradients);
        // Value, gradient, two moments.
        EXPECT_EQ(w.memory.state - p.memory.state, Bytes(4 * (experts - experts / e)));
        // Rows of experts are kept besides, and how many come from where.
        const int64_t kept = stage == 2 ? 4 * (kRows * kChosen * kExpertHidden + kExperts) : 0;
        EXPECT_EQ(p.memory.kept - w.memory.kept, Bytes(kept));
      }
      EXPECT_EQ(part.edge_bytes, whole.edge_bytes);
    }
  }
}

// A product of one expert has E times the rows, of a device that has 1/E of them.
TEST(ExpertStageCosts, ProductsAreOfTheDevicesExperts) {
  const LayerSpec layer = ExpertGpt().layers[2];
  for (const int64_t e : {1, 2, 8}) {
    const LayerOperations ops = ShareOf(layer, kExpertSamples, TokenSlice(), Experts(e)).operations;
    int64_t products = 0;
    Flops flops;
    for (const Operation& o : ops.forward) {
      flops += o.flops;
      if (o.groups == 1) continue;
      ++products;
      EXPECT_EQ(o.groups, kExperts / e);
      EXPECT_EQ(o.m, kRows * kChosen / kExperts * e);
    }
    EXPECT_EQ(products, e == kExperts ? 0 : 2);
    EXPECT_EQ(flops, layer.costs(kExpertSamples).forward);
  }
}

// Each of a group's devices has whole experts and its own tokens: the group's sums are gone.
TEST(ExpertStageCosts, WholeExpertsInAGroup) {
  const ModelGraph graph = ExpertGpt();
  const LayerSpec& layer = graph.layers[2];
  const TensorShare split = ShareOf(layer, kExpertSamples, TokenSlice(), Experts(4, 2, true));
  const TensorShare whole = ShareOf(layer, kExpertSamples, TokenSlice(), Experts(4, 2, true, true));
  const Bytes rows(4 * kRows * kChosen * kExpertHidden);
  ASSERT_EQ(split.forward.size(), 6);  // a gather and a scatter besides
  EXPECT_EQ(split.forward[2].bytes, rows);
  ASSERT_EQ(whole.forward.size(), 4);
  EXPECT_EQ(whole.forward[0].kind, Collective::kAllToAll);
  EXPECT_EQ(whole.forward[0].bytes * 2, rows);
  EXPECT_TRUE(whole.backward_weight.empty());
  const CostTable a = ExpertTable(graph, Experts(4, 2, true));
  const CostTable b = ExpertTable(graph, Experts(4, 2, true, true));
  const Bytes experts(4 * kExperts * 3 * kExpertHidden * kInner);
  EXPECT_EQ(a.stages[2].memory.expert_gradients * 8, experts);  // E x T parts, of 4 copies
  EXPECT_EQ(b.stages[2].memory.expert_gradients * 4, experts);  // E parts, of 2 copies
  EXPECT_EQ(ExpertTable(graph, Experts(2, 2, true, true)).stages[2].memory.expert_gradients,
            Bytes(0));
}

// Shards: experts are divided among the copies that have the same ones.
TEST(ExpertStageCosts, ShardsOfExperts) {
  const StageMemory m = ExpertTable(ExpertGpt(), Experts(4)).stages[2].memory;
  const int64_t experts = m.expert_gradients.value(), others = m.gradients.value();
  Shard shard = {Sharding::kOptimizer, /*parts=*/16, /*index=*/0, /*expert_copies=*/4};
  EXPECT_EQ(StateOf(m, shard).always.optimizer, Bytes(2 * (others / 16 + experts / 4)));
  shard.sharding = Sharding::kFully;
  EXPECT_EQ(StateOf(m, shard).always.weights, Bytes(others / 16 + experts / 4));
  EXPECT_EQ(StateOf(m, shard).gathered, Bytes(others + experts));
  shard.parts = 4;  // no other copy has them
  EXPECT_EQ(StateOf(m, shard).always.weights, Bytes(others / 4 + experts));
  EXPECT_EQ(StateOf(m, shard).gathered, Bytes(others));
  EXPECT_EQ(StateOf(m, shard).run_gradients, Bytes(others));
  EXPECT_EQ(shard.OfExperts().parts, 1);
}

// Megatron-Core's kernels compute the same products, keep the rows that experts take, the norm's
// output, what the gate gives and float32 scores, and exchange as many rows.
TEST(ExpertStageCosts, MegatronsExperts) {
  for (const int64_t shared : {0, 1}) {
    const ModelGraph graph = WithMegatronActivations(
        WithMegatronKernels(ExpertGpt(shared), AttentionImplementation::kFused));
    const LayerSpec own = ExpertGpt(shared).layers[2], &layer = graph.layers[2];
    for (const int64_t e : {1, 4}) {
      const TensorShare share = ShareOf(layer, kExpertSamples, TokenSlice(), Experts(e));
      Flops flops;
      for (const Operation& o : share.operations.forward) flops += o.flops;
      EXPECT_EQ(flops, own.costs(kExpertSamples).forward);
      // Rows out and back, counts, and the rows' weights.
      EXPECT_EQ(share.forward.size(), e > 1 ? 4 : 0);
      const int64_t rows = kRows * kChosen, all = kRows * (kChosen + shared);
      const int64_t routing =
          kRows + kRows * kExperts + 3 * rows + kExperts + 1 + (e > 1 ? kExperts : 0);
      const int64_t numbers = routing + kRows * kExpertHidden + rows * kExpertHidden +
                              3 * all * kInner + 3 * kRows * kExperts;
      EXPECT_EQ(share.costs.kept, Bytes(4 * numbers)) << e << " " << shared;
    }
    // Each device of a group that splits experts sends its own rows.
    const TensorShare group = ShareOf(layer, kExpertSamples, TokenSlice(), Experts(4, 2, true));
    const size_t exchanges = group.forward.size();
    EXPECT_EQ(group.forward[exchanges - 3].bytes, Bytes(4 * kRows / 2 * kChosen * kExpertHidden));
    EXPECT_EQ(group.forward.back().bytes, Bytes(4 * 2 * kRows / 2 * kChosen));
  }
}

TEST(ExpertStageCosts, Refusals) {
  const auto message = [](const ModelGraph& graph, TensorParallel split, int64_t copies = 16) {
    return std::string(CheckExpertParallel(graph, split, copies, "E").message());
  };
  EXPECT_EQ(message(ExpertGpt(), Experts(4)), "");
  EXPECT_EQ(message(ExpertGpt(), Experts(0)), "E=0: must be at least 1");
  EXPECT_EQ(message(ExpertGpt(), Experts(3)),
            "E=3: must divide the 8 experts of layer \"block0/experts\"; the nearest that does is "
            "2");
  EXPECT_EQ(message(ExpertGpt(), Experts(8), 12),
            "E=8: must divide the 12 devices of C x D; the nearest that does is 6");
  EXPECT_THAT(message(ExpertGpt(), Experts(4, 2, false, true)),
              HasSubstr("needs sequence parallelism"));
  EXPECT_EQ(message(ExpertGpt(), Experts(1, 2, true, true)),
            "E=1: with whole_experts it must be a multiple of T=2");
  const ModelGraph dense =
      *BuildGpt(LlamaConfig(/*layers=*/1, kExpertHidden, /*heads=*/4, kInner, kExpertTokens, 40));
  EXPECT_THAT(message(dense, Experts(2)), HasSubstr("has no layer with experts; E must be 1"));
  const ModelPartition all = *MakeRangePartition(ExpertGpt(), {0});
  EXPECT_THAT(
      std::string(ComputeStageCosts(ExpertGpt(), all, kExpertSamples, ExpertOptions(Experts(16)))
                      .status()
                      .message()),
      HasSubstr("--expert_parallel=16: must divide the 8 experts"));
}

}  // namespace
}  // namespace pipelab
