#include "pipelines/step/step.h"

#include <algorithm>
#include <limits>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "models/specs/megatron_kernels.h"
#include "models/zoo/gpt.h"
#include "models/zoo/layer_groups.h"
#include "models/zoo/local_heads.h"
#include "models/zoo/resnet.h"
#include "pipelines/cluster/catalog.h"
#include "pipelines/cluster/device.h"
#include "pipelines/cluster/rank_network.h"
#include "pipelines/step/execution.h"
#include "pipelines/step/model_on_cluster.h"
#include "pipelines/step/step_cache.h"
#include "tests/support/grouped_step.h"
#include "tools/base/status_matchers.h"

namespace pipelab {
namespace {

using testing::HasSubstr;

TEST_F(GroupedStepTest, LayoutsOfMegatronAreThoseOfLayers) {
  StepConfig c = Config("interleaved", 2, 2, 4);
  c.virtual_stages = 2;
  c.layout = "11+8+8+7";  // two layers a block, the embedding and the head
  const StepPrediction layers = Evaluate(c);
  c.layout = "Et*5|(t*4|)*2t*3L";
  const StepPrediction megatron = Evaluate(c);
  EXPECT_EQ(megatron.step_time, layers.step_time);
  EXPECT_EQ(megatron.largest_device, layers.largest_device);
  c.layout = "Et*5|(t*4|)*2t*4L";
  EXPECT_THAT(PredictStep(grid_, c).status(),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("--layout=Et*5|(t*4|)*2t*4L: Megatron-LM's layout: 17 Transformer "
                                 "layers, but the model has 16")));
}

// What the mode costs, by hand: a step of one stage with nothing to send.
TEST_F(GroupedStepTest, ExecutionAddsWhatItsPartsCost) {
  StepConfig c = Config("1f1b", 1, 1, 4);
  c.tensor = 4;
  const Nanoseconds plain = Evaluate(c).step_time, gap = LaunchGap(cluster_.device);
  EXPECT_EQ(gap, Microseconds(45));
  c.execution = kInputBroadcasts;
  // Four forwards, each with two broadcasts: half a call and three hops of 3.4 us.
  const Nanoseconds broadcast =
      Nanoseconds(cluster_.device.collective_overhead->value.value() / 2) + Nanoseconds(10200);
  EXPECT_EQ(Evaluate(c).step_time, plain + (gap + broadcast * 2) * 4);
  c.execution = kStepPasses;
  const StepPrediction passes = Evaluate(c);
  c.execution = 0;
  const Nanoseconds adam = Evaluate(c).step.costs.stages[0].step;
  EXPECT_EQ(passes.step_time, plain + Nanoseconds(adam.value() * 18 / 28));
  c.execution = kStepChecks;  // on one device: a gap for each of two sums
  EXPECT_EQ(Evaluate(c).step_time, plain + gap * 2);
}

// With M = P a device holds V M micro-batches instead of those of its warm-up, and no step with
// calls is faster than with messages of their own.
TEST_F(GroupedStepTest, MegatronsCallsAndOrder) {
  StepConfig c = Config("interleaved", 4, 2, 4);
  c.virtual_stages = 2;
  c.overlap_data = false;
  const StepPrediction plain = Evaluate(c);
  c.execution = kAllExecutionParts;
  const StepPrediction megatron = Evaluate(c);
  EXPECT_GT(megatron.step_time, plain.step_time);
  for (int d = 0; d < 4; ++d) EXPECT_EQ(megatron.devices[d].peak_in_flight, 8) << d;
  EXPECT_LT(plain.devices[3].peak_in_flight, 8);
  EXPECT_GT(megatron.devices[3].peak_activation, plain.devices[3].peak_activation);
  EXPECT_EQ(megatron.devices[1].sent, plain.devices[1].sent);
  c.execution = kAllExecutionParts & ~kAllForwardsFirst;
  EXPECT_EQ(Evaluate(c).devices[3].peak_in_flight, plain.devices[3].peak_in_flight);
  c.micro_batches = 8;
  c.execution = kAllExecutionParts;
  EXPECT_LT(Evaluate(c).devices[3].peak_in_flight, 8);
  // Two members still stand for all.
  c.data = 4;
  const StepPrediction folded = Evaluate(c);
  StepModel every = grid_;
  every.fold_data = false;
  PIPELAB_ASSERT_OK_AND_ASSIGN(const StepPrediction all, PredictStep(every, c));
  EXPECT_EQ(folded.step_time, all.step_time);
}

// Two members stand for all: the same time to the nanosecond, and the same memory to the byte.
TEST_F(GroupedStepTest, TwoCopiesStandForAll) {
  StepModel all = grid_;
  all.fold_data = false;
  for (const char* scheme : {"1f1b", "gpipe", "breadth_first", "interleaved", "zb_h1"}) {
    for (const int data : {2, 4, 6, 8}) {
      for (const Sharding sharding :
           {Sharding::kReplicated, Sharding::kOptimizer, Sharding::kGradients, Sharding::kFully}) {
        for (const bool overlap : {false, true}) {
          StepConfig c = Config(scheme, 4, data, 8);
          c.sharding = sharding;
          c.overlap_data = c.overlap_pipeline = overlap;
          c.split_head = c.scheme == "zb_h1" && ShardsGradients(sharding);
          SCOPED_TRACE(c.ToString());
          PIPELAB_ASSERT_OK_AND_ASSIGN(const StepPrediction two, PredictStep(grid_, c));
          PIPELAB_ASSERT_OK_AND_ASSIGN(const StepPrediction every, PredictStep(all, c));
          EXPECT_EQ(two.step_time, every.step_time);
          EXPECT_EQ(two.largest_device, every.largest_device);
        }
      }
    }
  }
}

// The order that MakeSchedule gives without times, in the place of one for the step's own, which is
// nowhere longer; schemes with one order have no other.
TEST_F(GroupedStepTest, PublishedOrdersAreThoseForEqualTimes) {
  for (const char* scheme : {"zb1p", "zb2p", "interleaved_zb1p", "zbv", "v_half", "v_min"}) {
    StepConfig c = Config(scheme, 4, 1, 12);
    SCOPED_TRACE(c.ToString());
    const StepPrediction own = Evaluate(c);
    c.published_order = true;
    const StepPrediction published = Evaluate(c);
    PIPELAB_ASSERT_OK_AND_ASSIGN(const Schedule plain, MakeSchedule(scheme, SchemeSizes(c)));
    EXPECT_EQ(published.step.program.schedule.order, plain.order);
    EXPECT_LE(own.step_time, published.step_time);
  }
  StepConfig c = Config("1f1b", 4, 1, 12);
  c.published_order = true;
  EXPECT_THAT(PredictStep(grid_, c), StatusIs(absl::StatusCode::kInvalidArgument,
                                              "published: 1f1b has one order whatever passes "
                                              "take; leave it out"));
}

// The last device keeps the gradients of the scores until W where the head is split, and they are
// its largest tensors. A backward takes as long as before.
TEST_F(GroupedStepTest, TheHeadIsSplitWhereAsked) {
  for (const char* scheme : {"zb_h1", "zb_h2", "zbv", "v_half", "dualpipev", "gis"}) {
    StepConfig c = Config(scheme, 4, 1, 12);
    SCOPED_TRACE(c.ToString());
    const StepPrediction whole = Evaluate(c);
    c.split_head = true;
    const StepPrediction split = Evaluate(c);
    EXPECT_LE(whole.largest_device, split.largest_device);
    const std::vector<StageCost>&of_whole = whole.step.costs.stages,
          &of_split = split.step.costs.stages;
    for (size_t s = 0; s < of_whole.size(); ++s) {
      EXPECT_EQ(of_whole[s].backward_input + of_whole[s].backward_weight,
                of_split[s].backward_input + of_split[s].backward_weight);
      const bool last = s + 1 == of_whole.size();
      EXPECT_EQ(of_whole[s].backward_weight < of_split[s].backward_weight, last);
      EXPECT_EQ(of_whole[s].memory.kept_for_weight < of_split[s].memory.kept_for_weight, last);
    }
  }
  StepConfig c = Config("1f1b", 4, 2, 12);
  c.split_head = true;
  EXPECT_THAT(PredictStep(grid_, c),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       "split_head: 1f1b does not split backwards; leave it out"));
  c = Config("zb_h1", 4, 2, 12);
  c.sharding = Sharding::kFully;
  EXPECT_THAT(PredictStep(grid_, c),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       testing::HasSubstr("sharding=fully: gradients come together for weight "
                                          "parts alone")));
}

TEST_F(GroupedStepTest, ShardingSavesMemoryAndOverlapTime) {
  StepConfig c = Config("1f1b", 2, 8, 4);
  const StepPrediction replicated = Evaluate(c);
  c.sharding = Sharding::kFully;
  const StepPrediction sharded = Evaluate(c);
  EXPECT_LT(sharded.largest_device, replicated.largest_device);
  c.overlap_data = false;
  EXPECT_GE(Evaluate(c).step_time, sharded.step_time);
}

// The most at a time, which of a breadth-first order is less than the two peaks together.
TEST_F(GroupedStepTest, LargestDeviceIsTheMostAtATime) {
  StepConfig c = Config("breadth_first", 2, 8, 4);
  c.virtual_stages = 4;
  const StepPrediction replicated = Evaluate(c);
  EXPECT_EQ(replicated.largest_device, LargestDevice(replicated.trace));
  c.sharding = Sharding::kFully;
  const StepPrediction sharded = Evaluate(c);
  EXPECT_LT(sharded.largest_device, LargestDevice(sharded.trace));
  for (const DeviceTrace& d : sharded.trace.devices) {
    EXPECT_GE(sharded.largest_device, d.peak_state);
    EXPECT_GE(sharded.largest_device, d.peak_activation);
  }
}

// One device, one micro-batch: the forward, the backward and the step, and the model's flops.
TEST_F(GroupedStepTest, OneDeviceIsItsStage) {
  const StepPrediction p = Evaluate(Config("gpipe", 1, 1, 1));
  const StageCost& stage = p.step.costs.stages[0];
  EXPECT_EQ(p.step_time, stage.forward + stage.backward_input + stage.backward_weight + stage.step);
  EXPECT_NEAR(
      p.tflops_per_device,
      StepCache(grid_).ModelFlops(1).value() * 1e-3 / static_cast<double>(p.step_time.value()),
      1e-9);
  EXPECT_EQ(p.step.config.batch(), 1);
}

TEST_F(GroupedStepTest, RefusesWhatCannotBe) {
  const auto message = [&](const StepConfig& c) {
    return std::string(PredictStep(grid_, c).status().message());
  };
  EXPECT_THAT(message(Config("1f1b", 0, 1, 1)), HasSubstr("P=0: must be at least 1"));
  EXPECT_THAT(message(Config("1f1b", 64, 1024, 1)),
              HasSubstr("P=64 x T=1 x D=1024 is 65536 devices; cluster dgx1-v100 has 1024"));
  EXPECT_THAT(message(Config("1f1b", 32, 1, 32)),
              HasSubstr("32 stages, but the model has 18 blocks"));
  EXPECT_THAT(message(Config("nothing", 2, 1, 2)), HasSubstr("nothing"));
}

// Each replica's pipeline on devices of its own: two members still stand for all, and where nothing
// crosses a node the order of ranks is no matter of time.
TEST_F(GroupedStepTest, TwoCopiesStandForAllInEitherOrderOfRanks) {
  StepModel all = grid_;
  all.fold_data = false;
  for (const int data : {2, 4, 8}) {
    StepConfig c = Config("1f1b", 4, data, 4);
    c.ranks = RankOrder::kTensorPipelineData;
    SCOPED_TRACE(c.ToString());
    EXPECT_EQ(ParseStepConfig("c", c.ToString()).value(), c);
    PIPELAB_ASSERT_OK_AND_ASSIGN(const StepPrediction two, PredictStep(grid_, c));
    PIPELAB_ASSERT_OK_AND_ASSIGN(const StepPrediction every, PredictStep(all, c));
    EXPECT_EQ(two.step_time, every.step_time);
  }
}

// Megatron-LM V1.0 (nv-adlr.github.io/MegatronLMV1, read): 1,288 ms an iteration of a GPT of 1.2B
// on one V100, "batch size 8", everything recomputed. Nothing of the machine comes from this run.
// The batch is read as one micro-batch; as eight, its products would be smaller and the step
// longer.
// Every layout of a network with skip connections into three stages that learn locally.
TEST(LocalCuts, AreTheBestThatLeaveEveryLayerAGradient) {
  ResNetConfig config;
  config.blocks = {1, 1};
  config.width = 64;
  config.height = config.image_width = 32;
  PIPELAB_ASSERT_OK_AND_ASSIGN(const GroupedModel model, BuildResNet(config));
  PIPELAB_ASSERT_OK_AND_ASSIGN(const ClusterSpec cluster, LoadCluster("--cluster", "dgx1-v100"));
  StepModel on;
  on.model = &model;
  on.cluster = &cluster;
  StepCache cache(on);
  StepConfig c = Config("local", /*pipeline=*/3, /*data=*/1, /*micro_batches=*/4);
  c.cut = CutRule::kLayers;
  c.micro_batch_size = 8;
  const auto longest_stage = [&](const StepConfig& of) -> absl::StatusOr<Nanoseconds> {
    PIPELAB_ASSIGN_OR_RETURN(const Step step, BuildStep(&cache, of));
    Nanoseconds longest;
    for (const StageCost& s : step.costs.stages) {
      longest = std::max(longest, s.forward + s.backward_input + s.backward_weight);
    }
    return longest;
  };
  for (const LocalHead head : {LocalHead::kLinear, LocalHead::kConvolution}) {
    c.local_heads = head;
    c.layout = "";
    PIPELAB_ASSERT_OK_AND_ASSIGN(const Nanoseconds chosen, longest_stage(c));
    Nanoseconds best = Nanoseconds(std::numeric_limits<int64_t>::max());
    int allowed = 0, refused = 0;
    const int layers = static_cast<int>(model.graph.layers.size());
    for (int first = 1; first < layers - 1; ++first) {
      for (int second = first + 1; second < layers; ++second) {
        c.layout = absl::StrCat(first, "+", second - first, "+", layers - second);
        const absl::StatusOr<Nanoseconds> longest = longest_stage(c);
        ++(longest.ok() ? allowed : refused);
        if (longest.ok()) best = std::min(best, *longest);
      }
    }
    EXPECT_EQ(chosen.value(), best.value()) << LocalHeadName(head);
    EXPECT_GT(allowed, 5);
    EXPECT_GT(refused, 5);
  }
}

TEST(MegatronV1, OneV100) {
  GptConfig gpt;
  gpt.layers = 40;
  gpt.hidden = 1536;
  gpt.heads = 16;
  gpt.tokens = 1024;
  gpt.vocabulary = 50304;
  gpt.tied_embeddings = true;
  gpt.dropout = 0.1;
  const GroupedModel model = GroupByName(WithMegatronKernels(BuildGpt(gpt).value()));
  const ClusterSpec cluster = LoadCluster("--cluster", "dgx1-v100").value();
  StepModel step;
  step.model = &model;
  step.cluster = &cluster;
  step.type = NumberType::kFp16;
  StepConfig c = Config("1f1b", 1, 1, 1);
  c.micro_batch_size = 8;
  for (const Recompute recompute : {Recompute::kFull, Recompute::kBlocks}) {
    c.recompute = recompute;
    const auto predicted = PredictStep(step, c);
    ASSERT_THAT(predicted, IsOk());
    EXPECT_NEAR(ToSeconds(predicted->step_time) / 1.288, 1, 0.04);
  }
  c.micro_batch_size = 1;
  c.micro_batches = 8;
  const auto smaller = PredictStep(step, c);
  ASSERT_THAT(smaller, IsOk());
  EXPECT_NEAR(ToSeconds(smaller->step_time) / 1.288, 1.25, 0.04);
}

// SlimPipe's context exchange: with long samples equal slices are unequal passes, whose devices
// wait for one another; spread, they take less, and what they exchange is counted.
TEST(Step, SlicesMaySpreadTheirAttention) {
  GptConfig gpt;
  gpt.layers = 16;
  gpt.hidden = 1024;
  gpt.heads = 16;
  gpt.tokens = 65536;
  gpt.vocabulary = 8192;
  auto on = ModelOnCluster::Of(BuildGpt(gpt).value(), LoadCluster("--cluster", "dgx-a100").value(),
                               NumberType::kBf16);
  const auto predict = [&](const std::string& text) {
    return PredictStep(on->step(), ParseStepConfig("config", text).value());
  };
  for (const std::string scheme : {"seq1f1b:P=4,T=2,M=4,slices=8,sequence",
                                   "interleaved_seq1f1b:P=4,T=2,V=2,M=4,slices=16,sequence"}) {
    PIPELAB_ASSERT_OK_AND_ASSIGN(const StepPrediction own, predict(scheme));
    PIPELAB_ASSERT_OK_AND_ASSIGN(const StepPrediction spread, predict(scheme + ",slice_exchange"));
    EXPECT_LT(spread.step_time, own.step_time) << scheme;
    EXPECT_LT(spread.bubble, own.bubble) << scheme;
    EXPECT_GT(spread.devices[0].tensor, own.devices[0].tensor) << scheme;
    EXPECT_GE(spread.devices[0].memory, own.devices[0].memory) << scheme;
  }
  const auto refused = [&](const std::string& text, const char* what) {
    EXPECT_THAT(predict(text), StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr(what)));
  };
  refused("1f1b:P=4,M=4,slice_exchange", "slice_exchange: 1f1b has no token slices");
  refused("seq1f1b:P=4,M=4,slices=3,slice_exchange",
          "slice_exchange: token slices of 21846,21845,21845 tokens: must be equal");
}

}  // namespace
}  // namespace pipelab
