// Hybrid sharding: state divided within groups of data-parallel copies, the same in each group.
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "models/zoo/layer_groups.h"
#include "pipelines/cluster/catalog.h"
#include "pipelines/cluster/rank_network.h"
#include "pipelines/cost/collectives.h"
#include "pipelines/step/step.h"
#include "pipelines/step/step_testing.h"
#include "tools/base/status_matchers.h"

namespace pipelab {
namespace {

using testing::HasSubstr;

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

// Sums within a group of one node, then of the parts over the nodes' cards; gathers stay in a node.
TEST_F(ShardsTest, SumsHaveTwoLevels) {
  PIPELAB_ASSERT_OK_AND_ASSIGN(const Step step, BuildStep(on_, Config(32, 8)));
  PIPELAB_ASSERT_OK_AND_ASSIGN(const Step node, BuildStep(on_, Config(8, 0)));
  const std::vector<int> devices = {0, 1};  // two stand for all
  const Bytes bytes(int64_t{1} << 30);
  const auto time = [&](const Step& s, Collective kind) {
    return CollectiveTime(s.costs, kind, devices, bytes);
  };
  EXPECT_EQ(time(step, Collective::kAllGather), time(node, Collective::kAllGather));
  // Bytes are counted with 4 a number and travel with 2.
  const PathCost across = RingStep(cluster_, {4, 8});
  const Nanoseconds more =
      RingTime(across, 4, Collective::kAllReduce, Bytes(bytes.value() / 8 / 2)) +
      cluster_.device.collective_overhead->value;
  for (const Collective kind : {Collective::kReduceScatter, Collective::kAllReduce}) {
    EXPECT_NEAR(static_cast<double>(time(step, kind).value()),
                static_cast<double>((time(node, kind) + more).value()), 2);
  }
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
