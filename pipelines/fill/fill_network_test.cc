#include "pipelines/fill/fill_network.h"

#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "models/zoo/bert.h"
#include "pipelines/cluster/catalog.h"
#include "tools/base/status_matchers.h"

namespace pipelab {
namespace {

using testing::HasSubstr;

ModelGraph Bert() {
  BertConfig c;
  c.layers = 12;
  c.hidden = 768;
  c.heads = 12;
  c.tokens = 512;
  c.vocabulary = 30522;
  return BuildBert(c).value();
}

Machine V100() {
  return {LoadCluster("--cluster", "p3.16xlarge").value().device, NumberType::kFp16};
}

DeviceGaps GapsOf(int64_t milliseconds, int64_t free, int64_t always_free) {
  DeviceGaps device;
  for (int n = 0; n < 2; ++n) {
    Gap gap;
    gap.begin_ns = n * 10000000000;
    gap.end_ns = gap.begin_ns + milliseconds * 1000000;
    gap.free = Bytes(free);
    device.gaps.push_back(gap);
    device.idle += gap.length();
  }
  device.always_free = Bytes(always_free);
  return device;
}

// A round is the layers' passes, one after the other, and its flops are those of the network.
TEST(FillNetworks, AreTheLayersOfTheNetwork) {
  const ModelGraph graph = Bert();
  const Machine machine = V100();
  for (const bool training : {false, true}) {
    FillNetworkOptions options;
    options.training = training;
    PIPELAB_ASSERT_OK_AND_ASSIGN(const std::vector<FillNetwork> sizes,
                                 FillNetworks(graph, machine, options));
    ASSERT_GE(sizes.size(), 4u);
    for (const FillNetwork& n : sizes) {
      double flops = 0;
      Nanoseconds time, pieces;
      for (const LayerSpec& layer : graph.layers) {
        const LayerCosts costs = layer.costs(n.samples);
        PIPELAB_ASSERT_OK_AND_ASSIGN(const LayerTimes t, TimesOf(layer, machine, n.samples));
        flops += costs.forward.value();
        time += t.forward;
        if (!training) continue;
        flops += costs.backward_input.value() + costs.backward_weight.value();
        time += t.backward_input + t.backward_weight;
      }
      for (const FillPiece& piece : n.job.pieces) pieces += piece.time;
      EXPECT_NEAR(n.flops.value() / flops, 1, 1e-12);
      EXPECT_EQ(n.time, pieces);
      EXPECT_EQ(pieces - time, training ? n.job.pieces.back().time : Nanoseconds(0));
      EXPECT_EQ(n.job.pieces.size(), graph.layers.size() * (training ? 2 : 1) + training);
      // Weights alone, or with gradients, two moments and masters.
      EXPECT_GE(n.job.state, Bytes(graph.num_parameters() * (training ? 16 : 2)));
      EXPECT_LE(n.memory, machine.device.memory.value);
    }
    // The roofline: no more than the peak, and more samples are no slower until memory ends.
    EXPECT_LT(FastestAlone(sizes).rate().value(), 125e12);
    EXPECT_GE(FastestAlone(sizes).rate(), sizes[0].rate());
  }
}

TEST(FillNetworks, NamesTheNetworkThatFitsNowhere) {
  Machine machine = V100();
  machine.device.memory.value = Bytes(1000000);
  EXPECT_THAT(FillNetworks(Bert(), machine, {}),
              StatusIs(absl::StatusCode::kResourceExhausted, HasSubstr("one sample does not fit")));
}

TEST(FillWithNetwork, IsLimitedByTimeAndByMemory) {
  PIPELAB_ASSERT_OK_AND_ASSIGN(const std::vector<FillNetwork> sizes,
                               FillNetworks(Bert(), V100(), {}));
  const int64_t much = int64_t{16} << 30;
  const FilledGaps roomy = FillWithNetwork(sizes, GapsOf(2000, much, much), Nanoseconds(0));
  // Pieces of fewer samples fill the gaps better, at nearly the same rate.
  EXPECT_LE(roomy.samples, FastestAlone(sizes).samples);
  EXPECT_GT(roomy.work / Milliseconds(4000), 0.95);
  EXPECT_LE(roomy.work, Milliseconds(4000));
  EXPECT_EQ(roomy.fits, Milliseconds(4000));
  EXPECT_NEAR(roomy.flops.value() / ToSeconds(roomy.work) / FastestAlone(sizes).rate().value(), 1,
              0.01);
  // Half a GiB holds few samples, and short gaps none that are large.
  const FilledGaps tight = FillWithNetwork(sizes, GapsOf(2000, 1 << 29, 1 << 29), Nanoseconds(0));
  EXPECT_GT(tight.samples, 0);
  EXPECT_LT(tight.samples, roomy.samples);
  EXPECT_LT(tight.flops.value(), roomy.flops.value());
  const FilledGaps brief = FillWithNetwork(sizes, GapsOf(2, much, much), Nanoseconds(0));
  EXPECT_LT(brief.samples, roomy.samples);
  // A state that does not stay is loaded and put back in each gap.
  const FilledGaps loaded = FillWithNetwork(sizes, GapsOf(2000, much, 0), Nanoseconds(0));
  EXPECT_LT(loaded.work, roomy.work - Milliseconds(30));
  const FilledGaps none = FillWithNetwork(sizes, GapsOf(2000, 1 << 20, 0), Nanoseconds(0));
  EXPECT_EQ(none.samples, 0);
  EXPECT_EQ(none.flops.value(), 0);
  EXPECT_EQ(none.fits, Nanoseconds(0));
}

}  // namespace
}  // namespace pipelab
