#include "pipelines/cost/layer_times.h"

#include <algorithm>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "models/zoo/published.h"
#include "pipelines/cluster/catalog.h"
#include "tools/base/status_matchers.h"

namespace pipelab {
namespace {

// All peaks and bandwidths are reached at once, and nothing has overhead.
Machine Ideal(double flops, double bytes_per_second) {
  Machine machine;
  machine.device.name = "ideal";
  machine.device.peaks[NumberType::kFp32] = {FlopsPerSecond(flops), "test"};
  machine.device.memory_bandwidth = {BytesPerSecond(bytes_per_second), "test"};
  const Sourced<EfficiencyCurve> all = {{{{1, 1}}}, "test"};
  for (OperationKind kind :
       {OperationKind::kMatmul, OperationKind::kConvolution, OperationKind::kAttention}) {
    machine.device.arithmetic[kind] = all;
  }
  machine.device.memory_efficiency = all;
  return machine;
}

TEST(LayerTimes, AreFlopsWhereMemoryIsFast) {
  PIPELAB_ASSERT_OK_AND_ASSIGN(const ModelGraph graph, BuildPublished("gpt-6.6b"));
  const Machine machine = Ideal(1e15, 1e30);
  for (int i : {0, 1, 2}) {
    const LayerSpec& layer = graph.layers[i];
    const LayerCosts costs = layer.costs(2);
    PIPELAB_ASSERT_OK_AND_ASSIGN(const LayerTimes times, TimesOf(layer, machine, 2));
    const auto expect = [&](Nanoseconds time, Flops flops) {
      // Each of a few operations is rounded to a nanosecond.
      EXPECT_NEAR(static_cast<double>(time.value()), flops.value() / 1e6, 4) << layer.name;
    };
    expect(times.forward, costs.forward);
    expect(times.backward_input, costs.backward_input);
    expect(times.backward_weight, costs.backward_weight);
  }
}

TEST(LayerTimes, AreBytesWhereArithmeticIsFast) {
  PIPELAB_ASSERT_OK_AND_ASSIGN(const ModelGraph graph, BuildPublished("gpt-6.6b"));
  const Machine machine = Ideal(1e30, 1e12);
  const int64_t tokens = 1024, hidden = 4096, inner = 4 * hidden;
  // layers: embedding, attention, MLP, ...
  PIPELAB_ASSERT_OK_AND_ASSIGN(const LayerTimes mlp, TimesOf(graph.layers[2], machine, 1));
  const int64_t numbers = 5 * tokens * hidden + 2 * tokens * inner +
                          2 * (tokens * hidden + hidden * inner + tokens * inner);
  EXPECT_NEAR(static_cast<double>(mlp.forward.value()), 4e-3 * static_cast<double>(numbers), 4);
  PIPELAB_ASSERT_OK_AND_ASSIGN(const Nanoseconds step, StepTime(machine, 1000000, 7));
  EXPECT_EQ(step, Microseconds(28));
}

// A large model at a large batch takes longer than its flops at the peak, and less than three times
// as long; at half the batch at least half as long.
TEST(LayerTimes, OfPublishedModelsOnPublishedMachines) {
  PIPELAB_ASSERT_OK_AND_ASSIGN(const ModelGraph graph, BuildPublished("megatron-18.4b"));
  for (const auto& [name, type] : {std::make_pair("dgx-a100", NumberType::kBf16),
                                   std::make_pair("dgx1-v100", NumberType::kFp16),
                                   std::make_pair("tpu-v3", NumberType::kBf16)}) {
    PIPELAB_ASSERT_OK_AND_ASSIGN(const ClusterSpec cluster, LoadCluster("--cluster", name));
    const Machine machine = {cluster.device, type};
    Nanoseconds at_peak, sum, half;
    for (const LayerSpec& layer : graph.layers) {
      PIPELAB_ASSERT_OK_AND_ASSIGN(const LayerTimes t, TimesOf(layer, machine, 8));
      PIPELAB_ASSERT_OK_AND_ASSIGN(const LayerTimes h, TimesOf(layer, machine, 4));
      sum += t.forward + t.backward_input + t.backward_weight;
      half += h.forward + h.backward_input + h.backward_weight;
      const LayerCosts c = layer.costs(8);
      at_peak += Nanoseconds(
          static_cast<int64_t>((c.forward + c.backward_input + c.backward_weight).value() * 1e9 /
                               cluster.device.peaks.at(type).value.value()));
    }
    EXPECT_GT(sum, at_peak) << name;
    EXPECT_LT(sum, at_peak * 3) << name;
    EXPECT_GE(half * 2, sum) << name;
    EXPECT_LT(half, sum) << name;
  }
}

// The host's launches bind small work and leave large work as it is.
TEST(LayerTimes, LaunchesOfTheHostBindEachPass) {
  PIPELAB_ASSERT_OK_AND_ASSIGN(const ModelGraph graph, BuildPublished("gpt-6.6b"));
  PIPELAB_ASSERT_OK_AND_ASSIGN(const ClusterSpec cluster, LoadCluster("--cluster", "dgx1-v100"));
  Machine machine = {cluster.device, NumberType::kFp16};
  const LayerSpec& layer = graph.layers[2];
  const LayerTimes device = TimesOf(layer, machine, 1).value();
  const LayerOperations operations = layer.operations(1, TokenSlice());
  machine.device.host_launch = {Nanoseconds(1), "test"};
  EXPECT_EQ(TimesOf(layer, machine, 1)->forward, device.forward);
  machine.device.host_launch = {Milliseconds(100), "test"};
  const LayerTimes host = TimesOf(layer, machine, 1).value();
  const auto launched = [](const std::vector<Operation>& pass) {
    return std::count_if(pass.begin(), pass.end(), [](const Operation& o) { return !o.own; });
  };
  EXPECT_EQ(host.forward, Milliseconds(100) * launched(operations.forward));
  EXPECT_EQ(host.backward_input, Milliseconds(100) * launched(operations.backward_input));
  EXPECT_EQ(host.backward_weight, Milliseconds(100) * launched(operations.backward_weight));
}

TEST(LayerTimes, ErrorsNameTheLayerAndWhatTheDeviceLacks) {
  PIPELAB_ASSERT_OK_AND_ASSIGN(const ModelGraph graph, BuildPublished("gpt-6.6b"));
  Machine machine = Ideal(1, 1);
  machine.type = NumberType::kBf16;
  EXPECT_EQ(std::string(TimesOf(graph.layers[1], machine, 1).status().message()),
            "layer \"" + graph.layers[1].name + "\": device ideal has no peak for bf16");
}

}  // namespace
}  // namespace pipelab
