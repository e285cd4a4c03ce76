// Stage costs of one device of a tensor-parallel group.
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "models/files/layer_list.h"
#include "models/zoo/gpt.h"
#include "models/zoo/transformer.h"
#include "pipelines/cluster/catalog.h"
#include "pipelines/cluster/rank_network.h"
#include "pipelines/cost/stage_costs.h"
#include "tools/base/status_matchers.h"

namespace pipelab {
namespace {

using testing::HasSubstr;

constexpr int64_t kTensorSamples = 2, kTensorTokens = 16, kTensorHidden = 32, kTensorWords = 40,
                  kLayers = 2;

ModelGraph TensorGpt(bool tied = false) {
  GptConfig c;
  c.layers = kLayers;
  c.hidden = kTensorHidden;
  c.heads = 4;
  c.tokens = kTensorTokens;
  c.vocabulary = kTensorWords;
  c.tied_embeddings = tied;
  return *BuildGpt(c);
}

ModelGraph EncoderDecoder() {
  TransformerConfig c;
  c.layers = 2;
  c.hidden = kTensorHidden;
  c.heads = 4;
  c.feed_forward = 80;
  c.source_tokens = 24;
  c.target_tokens = kTensorTokens;
  c.vocabulary = kTensorWords;
  c.dropout = 0.1;
  return *BuildTransformer(c);
}

// Three stages, the second of which begins in the encoder where there is one.
ModelPartition InThree(const ModelGraph& graph) {
  const int n = static_cast<int>(graph.layers.size());
  return *MakeRangePartition(graph, {0, n / 3, 2 * n / 3});
}

// Whose host takes no time.
Machine A100() {
  Machine machine = {LoadCluster("--cluster", "dgx-a100")->device, NumberType::kBf16};
  machine.device.host_launch.reset();
  return machine;
}

// 1 us a step, a byte a nanosecond.
TensorGroup Group(int64_t degree, bool sequence) {
  return {{degree, sequence}, {Microseconds(1), BytesPerSecond(1e9)}};
}

std::vector<int64_t> Numbers(StageCost c) {
  std::vector<int64_t> n = {c.forward.value(),
                            c.backward_input.value(),
                            c.backward_weight.value(),
                            c.recompute.value(),
                            c.step.value(),
                            c.memory.state.value(),
                            c.memory.weights.value(),
                            c.memory.optimizer.value(),
                            c.memory.gradients.value()};
  for (const Bytes* b : c.memory.Activations()) n.push_back(b->value());
  return n;
}

TEST(TensorStageCosts, AGroupOfOneChangesNothing) {
  for (const ModelGraph& graph : {TensorGpt(), TensorGpt(/*tied=*/true), EncoderDecoder()}) {
    for (const bool machine : {false, true}) {
      for (const bool sequence : {false, true}) {
        StageCostOptions options;
        if (machine) options.machine = A100();
        const CostTable plain = *ComputeStageCosts(graph, InThree(graph), kTensorSamples, options);
        options.tensor = Group(1, sequence);
        const CostTable one = *ComputeStageCosts(graph, InThree(graph), kTensorSamples, options);
        for (size_t s = 0; s < plain.stages.size(); ++s) {
          EXPECT_EQ(Numbers(one.stages[s]), Numbers(plain.stages[s]));
        }
        EXPECT_EQ(one.edge_bytes, plain.edge_bytes);
        EXPECT_EQ(one.tie_bytes, plain.tie_bytes);
      }
    }
  }
}

// Attention and MLP of one block: a quarter of the flops, and each pass's collectives. An
// all-reduce over four takes 6 us and 1.5 ns a byte.
TEST(TensorStageCosts, TimesAreTheShareAndTheSums) {
  StageCostOptions options;
  options.rate = FlopsPerSecond(1e9);
  const ModelPartition p = *MakeRangePartition(TensorGpt(), {0, 1, 3});
  const StageCost whole = ComputeStageCosts(TensorGpt(), p, kTensorSamples, options)->stages[1];
  const int64_t bytes = 4 * kTensorSamples * kTensorTokens * kTensorHidden, ring = bytes * 3 / 4;
  options.tensor = Group(4, /*sequence=*/false);
  const StageCost part = ComputeStageCosts(TensorGpt(), p, kTensorSamples, options)->stages[1];
  EXPECT_EQ(part.forward.value(), whole.forward.value() / 4 + 2 * (6000 + 2 * ring));
  EXPECT_EQ(part.recompute, part.forward);
  EXPECT_EQ(part.backward_input.value(), whole.backward_input.value() / 4 + 2 * (6000 + 2 * ring));
  EXPECT_EQ(part.backward_weight.value(), whole.backward_weight.value() / 4);
  // Each a reduce-scatter and an all-gather of half of that; the weight gradients gather again.
  options.tensor = Group(4, /*sequence=*/true);
  const StageCost rows = ComputeStageCosts(TensorGpt(), p, kTensorSamples, options)->stages[1];
  EXPECT_EQ(rows.forward, part.forward);
  EXPECT_EQ(rows.backward_input, part.backward_input);
  EXPECT_EQ(rows.backward_weight.value(), part.backward_weight.value() + 2 * (3000 + ring));
  // Norms and the biases of second products are summed once a step: 2 (2 h + h) values.
  EXPECT_EQ(rows.step.value(), part.step.value() + 6000 + (4 * 6 * kTensorHidden) * 6 / 4);
}

TEST(TensorStageCosts, OnAMachineTimesAreThoseOfTheLayersParts) {
  const ClusterSpec cluster = *LoadCluster("--cluster", "dgx-a100");
  for (const ModelGraph& graph : {TensorGpt(), EncoderDecoder()}) {
    for (const int64_t degree : {2, 4}) {
      StageCostOptions options;
      options.machine = A100();
      options.tensor = {{degree, true}, RingStep(cluster, {degree, 1})};
      const ModelPartition p = InThree(graph);
      const CostTable t = *ComputeStageCosts(graph, p, kTensorSamples, options);
      Nanoseconds forward, weight, without;
      for (int layer : p.layers[2]) {
        PIPELAB_ASSERT_OK_AND_ASSIGN(const LayerTimes times,
                                     TimesOf(graph.layers[layer], *options.machine, kTensorSamples,
                                             TokenSlice(), options.tensor));
        forward += times.forward;
        weight += times.backward_weight;
        const TensorShare share =
            ShareOf(graph.layers[layer], kTensorSamples, TokenSlice(), options.tensor.split);
        without += *RunTime(options.machine->device, NumberType::kBf16, share.operations.forward);
        // bf16: half of the bytes that the share counts; halves of an all-reduce have half its
        // call.
        for (const TensorCollective& c : share.forward) {
          without += RingTime(options.tensor.hop, degree, c.kind, Bytes(c.bytes.value() / 2)) +
                     Nanoseconds(options.machine->device.collective_overhead->value.value() /
                                 (c.kind == Collective::kAllReduce ? 1 : 2));
        }
      }
      EXPECT_EQ(t.stages[2].forward, forward);
      EXPECT_EQ(forward, without);
      EXPECT_EQ(t.stages[2].backward_weight, weight);
    }
  }
}

// A list's measured layer takes 1/T of what follows the samples, and the group's sum.
TEST(TensorStageCosts, ListedLayersAreDividedAsTheySay) {
  ListedLayer layer;
  layer.name = "block";
  layer.costs = PassCosts<Nanoseconds>{{Nanoseconds(100), Nanoseconds(40000)}, {}, {}};
  layer.tensor_parallel = ListedSplit{{{"heads", 4}}, 0, Bytes(0), 0, Bytes(4000), Bytes(0), 0};
  LayerList list;
  list.name = "measured";
  list.layers = {layer};
  PIPELAB_ASSERT_OK_AND_ASSIGN(ModelGraph graph, MakeGraph(list, "list"));
  PIPELAB_ASSERT_OK_AND_ASSIGN(const ModelPartition one, MakeRangePartition(graph, {0}));
  StageCostOptions options;
  for (const int64_t t : {1, 2, 4}) {
    options.tensor = Group(t, false);
    const CostTable costs = *ComputeStageCosts(graph, one, kTensorSamples, options);
    const int64_t ring = 2 * (t - 1) * (1000 + kTensorSamples * 4000 / t);
    EXPECT_EQ(costs.stages[0].forward.value(), 100 + kTensorSamples * 40000 / t + ring);
  }
  list.layers[0].tensor_parallel.reset();
  PIPELAB_ASSERT_OK_AND_ASSIGN(graph, MakeGraph(list, "list"));
  EXPECT_THAT(ComputeStageCosts(graph, one, kTensorSamples, options),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("layer \"block\" does not say how it splits")));
}

// Divided parameters, and a sequence-parallel device's own rows on every edge.
TEST(TensorStageCosts, BytesOfADevice) {
  for (const ModelGraph& graph : {TensorGpt(), EncoderDecoder()}) {
    const ModelPartition p = InThree(graph);
    const CostTable whole = *ComputeStageCosts(graph, p, kTensorSamples, {});
    for (const bool sequence : {false, true}) {
      StageCostOptions options;
      options.tensor = Group(4, sequence);
      const CostTable part = *ComputeStageCosts(graph, p, kTensorSamples, options);
      for (size_t e = 0; e < whole.edge_bytes.size(); ++e) {
        EXPECT_EQ(part.edge_bytes[e] * (sequence ? 4 : 1), whole.edge_bytes[e]);
      }
      for (int s = 0; s < 3; ++s) {
        int64_t values = 0;
        for (int layer : p.layers[s]) {
          for (const ParameterSpec& v : graph.layers[layer].parameters) {
            values += v.size() / (v.split_dimension < 0 ? 1 : 4);
          }
        }
        const StageMemory& m = part.stages[s].memory;
        EXPECT_EQ(m.weights, Bytes(4) * values);
        EXPECT_EQ(m.gradients, m.weights);
        EXPECT_EQ(m.state, m.weights * 4);
        EXPECT_LT(m.kept, whole.stages[s].memory.kept);
        EXPECT_LT(m.forward_peak, whole.stages[s].memory.forward_peak);
        EXPECT_LT(m.backward_peak, whole.stages[s].memory.backward_peak);
        if (!sequence || s == 2) continue;  // the head keeps a number a row more
        EXPECT_EQ(m.kept * 4, whole.stages[s].memory.kept);
      }
    }
  }
  StageCostOptions options;
  options.tensor = Group(4, false);
  const CostTable tied =
      *ComputeStageCosts(TensorGpt(true), InThree(TensorGpt(true)), kTensorSamples, options);
  EXPECT_EQ(tied.tie_bytes.at("embedding"), Bytes(4 * kTensorWords * kTensorHidden / 4));
}

TEST(TensorStageCosts, RefusesWhatCannotBeSplit) {
  StageCostOptions options;
  options.tensor = Group(3, false);
  EXPECT_THAT(ComputeStageCosts(TensorGpt(), InThree(TensorGpt()), kTensorSamples, options),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("--tensor_parallel=3: must divide the 40 words")));
  options.tensor = Group(2, true);
  options.slices = {11, 5};
  EXPECT_THAT(ComputeStageCosts(TensorGpt(), InThree(TensorGpt()), kTensorSamples, options),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("token slices of 11,5 tokens: with sequence parallelism 2 devices "
                                 "divide each, so they must be multiples of 2")));
  options.slices = {10, 6};
  EXPECT_THAT(ComputeStageCosts(TensorGpt(), InThree(TensorGpt()), kTensorSamples, options),
              IsOk());
  options.tensor = Group(2, false);
  options.slices = {11, 5};
  EXPECT_THAT(ComputeStageCosts(TensorGpt(), InThree(TensorGpt()), kTensorSamples, options),
              IsOk());
}

}  // namespace
}  // namespace pipelab
