// Steps of models whose experts are divided among devices.
#include <string>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "models/graph/collective.h"
#include "models/zoo/gpt.h"
#include "models/zoo/layer_groups.h"
#include "pipelines/cluster/catalog.h"
#include "pipelines/step/expert_exchange.h"
#include "pipelines/step/stage_cut.h"
#include "pipelines/step/step.h"
#include "tools/base/status_matchers.h"

namespace pipelab {
namespace {

using testing::HasSubstr;

constexpr int64_t kHidden = 256, kInner = 512, kExperts = 8, kLayers = 4;
constexpr int64_t kExpertValues = kLayers * kExperts * 3 * kHidden * kInner;

GroupedModel ExpertGpt() {
  GptConfig c = LlamaConfig(kLayers, kHidden, /*heads=*/8, kInner, /*tokens=*/128,
                            /*vocabulary=*/1024);
  c.experts.experts = kExperts;
  c.experts.chosen = 2;
  return GroupByName(*BuildGpt(c));
}

class ExpertStepTest : public testing::Test {
 protected:
  ExpertStepTest() {
    grid_.model = &model_;
    grid_.cluster = &cluster_;
  }

  StepPrediction Evaluate(const StepConfig& c) const {
    auto point = PredictStep(grid_, c);
    EXPECT_THAT(point, IsOk()) << c.ToString();
    return *std::move(point);
  }

  StepConfig Config(const std::string& text) const { return *ParseStepConfig("config", text); }

  const GroupedModel model_ = ExpertGpt();
  const ClusterSpec cluster_ = LoadCluster("--cluster", "dgx1-v100").value();
  StepModel grid_;
};

// One stage by hand: others are summed over all copies, experts over those with the same ones.
TEST_F(ExpertStepTest, ExpertsAreSummedByThoseThatHaveThem) {
  const int64_t others = 4 * (model_.graph.num_parameters() - kExpertValues);
  for (const int e : {2, 4, 8}) {
    StepConfig c = Config("gpipe:D=8");
    c.experts = e;
    const StepPrediction p = Evaluate(c);
    const int64_t experts = 4 * kExpertValues / e;
    EXPECT_EQ(p.devices[0].collective,
              RingTraffic(Bytes(others), 8, true) + RingTraffic(Bytes(experts), 8 / e, true));
    EXPECT_EQ(p.devices[0].peak_state, Bytes(4 * (others + experts)));
    c.sharding = Sharding::kOptimizer;
    EXPECT_EQ(Evaluate(c).devices[0].peak_state,
              Bytes(2 * (others + experts) + 2 * (others / 8 + experts / (8 / e))));
    if (e == 8) continue;
    // Sets of 4: their sums and gathers, and sums of a part between the two.
    c.shards = 4;
    const StepPrediction sets = Evaluate(c);
    const int64_t of_others = others / 4, of_experts = experts / (4 / e);
    EXPECT_EQ(sets.devices[0].peak_state,
              Bytes(2 * (others + experts) + 2 * (of_others + of_experts)));
    EXPECT_EQ(sets.devices[0].collective, RingTraffic(Bytes(others), 4, true) +
                                              RingTraffic(Bytes(experts), 4 / e, true) +
                                              RingTraffic(Bytes(of_others + of_experts), 2, true));
  }
}

// Two members stand for all copies, however these share experts.
TEST_F(ExpertStepTest, TwoCopiesStandForAll) {
  StepModel all = grid_;
  all.fold_data = false;
  for (const char* text :
       {"1f1b:P=2,T=2,D=8,M=4,E=4", "1f1b:P=2,T=2,D=8,M=4,E=8,sharding=optimizer",
        "1f1b:P=2,D=4,C=2,M=4,E=8,sharding=optimizer", "zb_h1:P=2,D=8,M=4,E=2,ranks=tp-pp-dp",
        "1f1b:P=2,T=2,D=4,M=4,E=4,sequence,whole_experts,sharding=gradients",
        "breadth_first:P=2,D=8,V=2,M=4,E=4,sharding=fully",
        "breadth_first:P=2,D=8,V=2,M=4,E=2,sharding=fully,shards=4",
        "1f1b:P=2,D=16,M=4,E=4,sharding=optimizer,shards=4", "1f1b:P=2,D=6,M=2,E=2"}) {
    const StepConfig c = Config(text);
    SCOPED_TRACE(text);
    const StepPrediction two = Evaluate(c);
    PIPELAB_ASSERT_OK_AND_ASSIGN(const StepPrediction every, PredictStep(all, c));
    EXPECT_EQ(two.step_time, every.step_time);
    EXPECT_EQ(two.largest_device, every.largest_device);
    EXPECT_GT(two.devices[0].tensor, Bytes(0));
  }
}

// Whose nodes have 8 devices: rows stay in one, or go over its network cards.
TEST_F(ExpertStepTest, ExchangesTakeTheLinksOfTheirRanks) {
  const auto path = [&](const char* text) {
    return TensorGroupOf(grid_, Config(text)).expert_path.bandwidth.value();
  };
  const double inside = path("1f1b:P=8,D=8,E=8");
  EXPECT_GT(inside, 4 * path("1f1b:P=8,D=8,E=8,ranks=tp-pp-dp"));
  EXPECT_GT(inside, 4 * path("1f1b:P=2,T=8,D=8,E=8"));
  EXPECT_EQ(path("1f1b:P=2,T=8,D=8,E=8,sequence,whole_experts"), inside);
  const StepPrediction near = Evaluate(Config("1f1b:P=4,D=8,M=4,E=8"));
  const StepPrediction far = Evaluate(Config("1f1b:P=4,D=8,M=4,E=8,ranks=tp-pp-dp"));
  EXPECT_GT(far.step.costs.stages[0].forward, near.step.costs.stages[0].forward);
  EXPECT_EQ(far.devices[0].tensor, near.devices[0].tensor);
}

// With eight experts over two nodes a token reaches the other node with one of two choices on
// average, and for 11 of 14 pairs at all: once is enough.
TEST_F(ExpertStepTest, TokensThatGoOnceTakeLess) {
  const char* far = "1f1b:P=2,D=8,M=4,E=8,ranks=tp-pp-dp";
  const std::string once = absl::StrCat(far, ",dispatch=once_per_node");
  const ClusterSpec cards = LoadCluster("--cluster", "dgx-h100").value();
  StepModel on = grid_;
  on.cluster = &cards;
  const auto path = [&](const std::string& text) {
    return TensorGroupOf(on, Config(text)).expert_path.bandwidth.value();
  };
  EXPECT_NEAR(path(once) / path(far), 14.0 / 11, 1e-12);
  EXPECT_EQ(Config(once).ToString(),
            "1f1b:P=2,T=1,D=8,V=0,b=1,M=4,E=8,dispatch=once_per_node,ranks=tp-pp-dp");
}

// Nothing is faster than without exchanges, and the more micro-batches, the more hides.
TEST_F(ExpertStepTest, ExchangesBesideOtherMicroBatches) {
  const auto forward = [&](const char* text) {
    return Evaluate(Config(text)).step.costs.stages[0].forward;
  };
  const Nanoseconds waited = forward("1f1b:T=8,D=8,M=8,E=8");
  const Nanoseconds few = forward("1f1b:T=8,D=8,M=2,E=8,exchanges=beside");
  const Nanoseconds many = forward("1f1b:T=8,D=8,M=8,E=8,exchanges=beside");
  const Nanoseconds delayed = forward("1f1b:T=8,D=8,M=8,E=8,exchanges=beside_delayed");
  EXPECT_GT(waited, few);
  EXPECT_GT(few, many);
  EXPECT_GE(many, delayed);
  // A fast network has nothing to hide.
  ClusterSpec fast = cluster_;
  for (ClusterLevel& level : fast.levels) {
    level.connection = {{Nanoseconds(0), "test"}, {BytesPerSecond(1e18), "test"}};
    level.rings.clear();
    level.through.reset();
  }
  fast.device.collective_overhead.reset();
  StepModel on = grid_;
  on.cluster = &fast;
  PIPELAB_ASSERT_OK_AND_ASSIGN(const StepPrediction least,
                               PredictStep(on, Config("1f1b:T=8,D=8,M=8,E=8")));
  EXPECT_GE(delayed, least.step.costs.stages[0].forward);
  EXPECT_EQ(MergedShare(Config("1f1b:M=8,exchanges=beside")), 7.0 / 8);
  EXPECT_EQ(MergedShare(Config("interleaved:V=4,M=8,exchanges=beside")), 7.0 / 8);
  EXPECT_EQ(MergedShare(Config("interleaved:V=4,M=1,exchanges=beside")), 0);  // nothing is beside
  EXPECT_EQ(MergedShare(Config("interleaved:P=4,V=2,M=8,exchanges=beside")), 5.0 / 16);
  EXPECT_EQ(MergedShare(Config("interleaved:P=4,V=2,M=4,exchanges=beside")), 0);
  EXPECT_EQ(MergedShare(Config("interleaved:P=4,V=2,M=8,group=8,exchanges=beside")), 1.0 / 16);
  EXPECT_EQ(MergedShare(Config("interleaved:V=6,M=3,group=9,exchanges=beside")), 2.0 / 18);
}

// Pair by pair: passes alone wait for their exchanges, merged ones hide what they can.
TEST_F(ExpertStepTest, MergedPassesHideTheirExchanges) {
  const StepPrediction waited = Evaluate(Config("interleaved_merged:T=8,D=8,V=1,M=8,E=8"));
  const StepPrediction beside =
      Evaluate(Config("interleaved_merged:T=8,D=8,V=1,M=8,E=8,exchanges=beside"));
  EXPECT_EQ(waited.step.costs.stages[0].forward, beside.step.costs.stages[0].forward);
  const Nanoseconds saving = beside.step.costs.stages[0].merged_saving;
  EXPECT_GT(saving, Nanoseconds(0));
  EXPECT_EQ(waited.step_time - beside.step_time, saving * (7 * 2));
  for (const char* sizes : {"P=2,D=8,V=2,M=8,E=8", "P=4,D=4,V=1,M=16,E=4"}) {
    const std::string text = absl::StrCat("interleaved_merged:", sizes);
    const StepPrediction alone = Evaluate(Config(text));
    const StepPrediction merged = Evaluate(Config(text + ",exchanges=beside"));
    const StepPrediction delayed = Evaluate(Config(text + ",exchanges=beside_delayed"));
    EXPECT_LT(merged.step_time, alone.step_time) << sizes;
    EXPECT_LE(delayed.step_time, merged.step_time) << sizes;
  }
}

TEST_F(ExpertStepTest, Refusals) {
  const auto message = [&](const char* text) {
    return std::string(PredictStep(grid_, Config(text)).status().message());
  };
  EXPECT_THAT(message("1f1b:P=2,D=4,E=3"), HasSubstr("E=3: must divide the 8 experts of layer"));
  EXPECT_THAT(message("1f1b:P=2,D=2,E=4"),
              HasSubstr("E=4: must divide the 2 devices of C x D; the nearest that does is 2"));
  EXPECT_THAT(message("1f1b:P=2,D=8,E=4,sharding=fully,shards=2"),
              HasSubstr("shards=2: must be a multiple of the 4 copies with different experts"));
  EXPECT_THAT(message("1f1b:P=2,T=2,D=2,E=4,whole_experts"), HasSubstr("sequence parallelism"));
  EXPECT_EQ(message("1f1b:P=2,T=2,D=2,E=4,sequence,whole_experts"), "");
  EXPECT_EQ(message("1f1b:P=2,D=2,dispatch=once_per_node"),
            "dispatch=once_per_node: needs experts over several devices; give E too");
  EXPECT_EQ(
      message("1f1b:P=2,D=2,E=2,exchanges=beside"),
      "exchanges=beside: 1f1b of P=2 does not merge micro-batches; 1f1b of P=1, interleaved and "
      "interleaved_merged do");
  EXPECT_EQ(message("1f1b:D=2,E=2,exchanges=beside,recompute=blocks"),
            "exchanges=beside: not with recompute=blocks");
}

}  // namespace
}  // namespace pipelab
