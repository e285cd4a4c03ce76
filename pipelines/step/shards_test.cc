// Hybrid sharding: state divided within groups of data-parallel copies, the same in each group.
#include <algorithm>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "models/zoo/gpt.h"
#include "models/zoo/layer_groups.h"
#include "pipelines/cluster/catalog.h"
#include "pipelines/cluster/rank_network.h"
#include "pipelines/cost/collectives.h"
#include "pipelines/step/step.h"
#include "tests/support/step_testing.h"
#include "tools/base/draws.h"
#include "tools/base/status_matchers.h"

namespace pipelab {
namespace {

using testing::HasSubstr;

StepConfig ShardedConfig(Draws* draws, bool experts) {
  StepConfig c;
  c.scheme = draws->Of<std::string>({"1f1b", "interleaved", "breadth_first", "chimera", "zb_h1"});
  c.pipeline = draws->Of<int>({1, 2, 4});
  if (c.scheme == "interleaved" || c.scheme == "breadth_first") {
    c.virtual_stages = draws->Of<int>({1, 2, 4});
  }
  c.tensor = draws->Of<int>({1, 1, 2, 4});
  c.context = draws->Of<int>({1, 1, 2});
  c.data = draws->Of<int>({2, 4, 6, 8, 12, 16});
  c.micro_batches = draws->Of<int>({1, 2, 4, 8});
  c.sharding = draws->Of<Sharding>({Sharding::kOptimizer, Sharding::kGradients, Sharding::kFully});
  std::vector<int> sets;
  for (int s = 2; s <= c.copies(); ++s) {
    if (c.copies() % s == 0) sets.push_back(s);
  }
  c.shards = draws->Of(sets);
  c.sequence_parallel = c.tensor > 1 && draws->OneIn(2);
  c.overlap_data = !draws->OneIn(3);
  c.overlap_pipeline = !draws->OneIn(3);
  c.steady_overlap = draws->OneIn(3);
  c.whole_messages = draws->OneIn(2);
  c.state = {2, 4};
  if (draws->OneIn(2)) c.ranks = RankOrder::kTensorPipelineData;
  if (!experts) return c;
  c.experts = draws->Of<int>({1, 2, 4, 8});
  c.whole_experts = c.tensor > 1 && draws->OneIn(2);
  if (c.scheme == "interleaved" && draws->OneIn(2)) c.exchanges = Exchanges::kBeside;
  return c;
}

class ShardsTest : public testing::Test {
 protected:
  ShardsTest() {
    on_.model = &model_;
    on_.cluster = &cluster_;
    on_.type = NumberType::kBf16;
  }

  StepConfig Config(int data, int shards, Sharding sharding = Sharding::kFully) const {
    StepConfig c;
    c.data = data;
    c.shards = shards;
    c.sharding = sharding;
    c.micro_batches = 4;
    return c;
  }
  StepPrediction Of(const StepConfig& c) const { return PredictStep(on_, c).value(); }

  const GroupedModel model_ = SmallGpt();
  const ClusterSpec cluster_ = LoadCluster("--cluster", "dgx-h100").value();
  StepModel on_;
};

TEST_F(ShardsTest, AllCopiesIsTheDefault) {
  for (const Sharding s : {Sharding::kOptimizer, Sharding::kGradients, Sharding::kFully}) {
    const StepPrediction all = Of(Config(16, 0, s)), named = Of(Config(16, 16, s));
    EXPECT_EQ(all.step_time, named.step_time);
    EXPECT_EQ(all.largest_device, named.largest_device);
  }
}

// A device has what one of a single group has, whatever the number of groups.
TEST_F(ShardsTest, MemoryIsThatOfOneGroup) {
  for (const Sharding s : {Sharding::kOptimizer, Sharding::kGradients, Sharding::kFully}) {
    const Bytes one = Of(Config(8, 0, s)).largest_device;
    EXPECT_EQ(Of(Config(16, 8, s)).largest_device, one);
    EXPECT_EQ(Of(Config(64, 8, s)).largest_device, one);
    EXPECT_LT(Of(Config(64, 0, s)).largest_device, one);
  }
}

// Sums within a set of one node, then of the parts over the nodes' cards; gathers stay in a node.
TEST_F(ShardsTest, SumsHaveTwoLevels) {
  PIPELAB_ASSERT_OK_AND_ASSIGN(const Step step, BuildStep(on_, Config(32, 8)));
  PIPELAB_ASSERT_OK_AND_ASSIGN(const Step node, BuildStep(on_, Config(8, 0)));
  const Bytes bytes(int64_t{1} << 30);
  // Two devices stand for a set, and two sets for all.
  for (const Collective kind : {Collective::kAllGather, Collective::kReduceScatter}) {
    for (const std::vector<int>& set : {std::vector<int>{0, 1}, {2, 3}}) {
      EXPECT_EQ(CollectiveTime(step.costs, kind, set, bytes),
                CollectiveTime(node.costs, kind, {0, 1}, bytes));
    }
  }
  // Bytes are counted with 4 a number and travel with 2.
  const Nanoseconds between =
      RingTime(RingStep(cluster_, {4, 8}), 4, Collective::kAllReduce, Bytes(bytes.value() / 2)) +
      cluster_.device.collective_overhead->value;
  for (const std::vector<int>& place : {std::vector<int>{0, 2}, {1, 3}}) {
    EXPECT_NEAR(static_cast<double>(
                    CollectiveTime(step.costs, Collective::kAllReduce, place, bytes).value()),
                static_cast<double>(between.value()), 2);
  }
}

// What a device sends to its likes in the other sets is part of its traffic.
TEST_F(ShardsTest, TrafficHasTheSumsBetweenSets) {
  for (const Sharding s : {Sharding::kOptimizer, Sharding::kGradients, Sharding::kFully}) {
    const StepPrediction one = Of(Config(8, 0, s));
    const int64_t values = one.step.costs.stages[0].memory.gradients.value() / 4;
    const Bytes part(4 * ((values + 7) / 8));
    for (const int sets : {2, 3, 4}) {
      EXPECT_EQ(Of(Config(8 * sets, 8, s)).devices[0].collective - one.devices[0].collective,
                RingTraffic(part, sets, /*all_reduce=*/true));
    }
  }
}

// With weights in 2 bytes what moves and what is kept are as a device has it: 16 copies, ZeRO's
// stages. `cast`: the copy in 4 bytes is the part of the weights.
TEST_F(ShardsTest, NarrowWeights) {
  const int64_t values = model_.graph.num_parameters(), part = (values + 15) / 16;
  const auto state = [&](Sharding s, StateNumbers numbers) {
    StepConfig c = Config(16, 0, s);
    c.state = numbers;
    return Of(c).devices[0].peak_state;
  };
  const StateNumbers two{2, 2}, four{2, 4}, cast{2, 2, /*cast=*/true};
  EXPECT_EQ(state(Sharding::kReplicated, two), Bytes(16 * values));
  EXPECT_EQ(state(Sharding::kReplicated, four), Bytes(18 * values));
  EXPECT_EQ(state(Sharding::kReplicated, {1, 2}), Bytes(15 * values));
  const auto padded = 16 * part;
  EXPECT_EQ(state(Sharding::kOptimizer, two), Bytes(4 * padded + 12 * part));
  EXPECT_EQ(state(Sharding::kOptimizer, four), Bytes(6 * padded + 12 * part));
  // With the stage's weights, and gradients of a run.
  EXPECT_EQ(state(Sharding::kGradients, four), Bytes(6 * padded + (4 + 12) * part));
  EXPECT_EQ(state(Sharding::kFully, two), Bytes(4 * padded + (2 + 2 + 12) * part));
  EXPECT_EQ(state(Sharding::kFully, cast), Bytes(4 * padded + (4 + 12) * part));
  // What moves: as much as numbers of 4 bytes that move as 2, or twice that.
  const auto time = [&](StateNumbers numbers) {
    StepConfig c = Config(16, 0, Sharding::kOptimizer);
    c.state = numbers;
    return Of(c).step_time;
  };
  EXPECT_EQ(time(two), time(StateNumbers()));
  EXPECT_GT(time(four), time(two));
  EXPECT_LT(time({1, 2}), time(two));
}

// All ways to fold copies have one price, that of a device for each: random steps of three models.
TEST_F(ShardsTest, FoldedCopiesHaveThePriceOfAll) {
  GptConfig of_experts = LlamaConfig(/*layers=*/4, /*hidden=*/256, /*heads=*/8,
                                     /*feed_forward=*/512, /*tokens=*/128, /*vocabulary=*/1024);
  of_experts.experts.experts = 8;
  of_experts.experts.chosen = 2;
  const std::vector<GroupedModel> models = {model_, SmallGpt(/*tied_embeddings=*/true),
                                            GroupByName(BuildGpt(of_experts).value())};
  std::vector<ClusterSpec> clusters;
  for (const char* name : {"dgx-h100", "dgx1-v100", "tpu-v3", "gb200-nvl72", "p3.16xlarge"}) {
    clusters.push_back(LoadCluster("--cluster", name).value());
  }
  int priced = 0;
  for (int i = 0; i < 1200; ++i) {
    Draws draws(i, "shards_test");
    const size_t model = draws.Of<size_t>({0, 1, 2, 2});
    on_.model = &models[model];
    on_.cluster = &clusters[draws.Below(static_cast<int64_t>(clusters.size()))];
    const StepConfig c = ShardedConfig(&draws, /*experts=*/model == 2);
    if (c.devices() > std::min<int64_t>(on_.cluster->max_devices(), 256)) continue;
    SCOPED_TRACE(absl::StrCat(on_.cluster->name, " ", c.ToString()));
    StepModel every = on_;
    every.fold_data = false;
    const absl::StatusOr<StepPrediction> folded = PredictStep(on_, c), all = PredictStep(every, c);
    ASSERT_EQ(folded.status(), all.status());
    if (!all.ok()) continue;
    ++priced;
    EXPECT_EQ(all->step_time, folded->step_time);
    EXPECT_EQ(all->largest_device, folded->largest_device);
    EXPECT_EQ(all->devices[0].collective, folded->devices[0].collective);
  }
  EXPECT_GT(priced, 200);
}

TEST_F(ShardsTest, Refusals) {
  const auto error = [&](const StepConfig& c) {
    return std::string(PredictStep(on_, c).status().message());
  };
  EXPECT_THAT(error(Config(16, 3)), HasSubstr("shards=3: must be at least 2 and divide the 16"));
  EXPECT_THAT(error(Config(16, 1)), HasSubstr("shards=1: must be at least 2"));
  EXPECT_THAT(error(Config(16, 8, Sharding::kReplicated)), HasSubstr("nothing is sharded"));
}

TEST_F(ShardsTest, TextReadsBack) {
  const StepConfig c = Config(16, 8);
  EXPECT_THAT(c.ToString(), HasSubstr("shards=8"));
  PIPELAB_ASSERT_OK_AND_ASSIGN(const StepConfig again, ParseStepConfig("config", c.ToString()));
  EXPECT_EQ(again, c);
}

}  // namespace
}  // namespace pipelab
