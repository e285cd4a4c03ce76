// Steps whose backwards rebuild blocks, or whose recomputes come early.
#include <algorithm>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "pipelines/step/step.h"
#include "pipelines/step/step_cache.h"
#include "tests/support/grouped_step.h"
#include "tools/base/status_matchers.h"

namespace pipelab {
namespace {

using testing::HasSubstr;

// Each rebuilt block gives memory for time; as many as a stage has are all.
TEST_F(GroupedStepTest, SomeBlocksOfAStageAreRebuilt) {
  StepConfig c = Config("1f1b", 2, 1, 1);
  c.micro_batches = 4;
  const auto plain = PredictStep(grid_, c);
  ASSERT_THAT(plain, IsOk());
  Nanoseconds time = plain->step_time;
  Bytes memory = plain->largest_device;
  c.recompute = Recompute::kBlocks;
  const auto all = PredictStep(grid_, c);
  ASSERT_THAT(all, IsOk());
  const int blocks = 16 / c.pipeline;
  for (c.rebuilt_blocks = 1; c.rebuilt_blocks <= blocks; ++c.rebuilt_blocks) {
    const auto some = PredictStep(grid_, c);
    ASSERT_THAT(some, IsOk()) << c.rebuilt_blocks;
    EXPECT_GT(some->step_time, time) << c.rebuilt_blocks;
    EXPECT_LT(some->largest_device, memory) << c.rebuilt_blocks;
    time = some->step_time;
    memory = some->largest_device;
  }
  EXPECT_EQ(time, all->step_time);
  EXPECT_EQ(memory, all->largest_device);
  c.recompute = Recompute::kFull;
  EXPECT_THAT(PredictStep(grid_, c).status().message(),
              HasSubstr("requires recompute=blocks, not recompute=full"));
}

// Every second block of a device: so it matters which stages it has, also to what is priced before.
TEST_F(GroupedStepTest, BlocksOfADeviceCountOverItsStages) {
  StepConfig deep = Config("1f1b", 4, 1, 1), wide = Config("interleaved", 2, 1, 1);
  wide.virtual_stages = 2;
  StepCache both(grid_);
  for (StepConfig* c : {&deep, &wide}) {
    c->micro_batches = 4;
    c->recompute = Recompute::kBlocks;
    c->rebuilt_every = 3;
    const auto alone = PredictStep(grid_, *c), after = PredictStep(&both, *c);
    ASSERT_THAT(alone, IsOk());
    ASSERT_THAT(after, IsOk());
    EXPECT_EQ(after->step_time, alone->step_time);
    EXPECT_EQ(after->largest_device, alone->largest_device);
  }
}

// Where devices of chimera wait in the middle of a step they rebuild stages for later backwards.
// The step is shorter, by the times of its own passes, for at most so many activations more.
TEST_F(GroupedStepTest, RecomputesInGaps) {
  StepConfig c = Config("chimera", 4, 2, 8);
  c.recompute = Recompute::kFull;
  const StepPrediction plain = Evaluate(c);
  c.early_recompute = 1;
  const StepPrediction one = Evaluate(c);
  c.early_recompute = 4;
  const StepPrediction more = Evaluate(c);
  EXPECT_LT(one.step_time, plain.step_time);
  EXPECT_LE(more.step_time, one.step_time);
  Bytes kept;
  for (const StageCost& stage : plain.step.costs.stages) kept = std::max(kept, stage.memory.kept);
  for (int d = 0; d < 4; ++d) {
    EXPECT_LE(one.devices[d].peak_activation, plain.devices[d].peak_activation + kept) << d;
    EXPECT_LE(more.devices[d].peak_activation, plain.devices[d].peak_activation + kept * 4) << d;
  }
  EXPECT_EQ(ParseStepConfig("config", c.ToString()).value(), c);
  const auto refused = [&](const std::string& why) {
    EXPECT_THAT(PredictStep(grid_, c).status().message(), HasSubstr(why));
  };
  c.recompute = Recompute::kBlocks;
  refused("early_recompute=4: requires recompute=full, not recompute=blocks");
  c.recompute = Recompute::kFull;
  c.scheme = "weipipe";
  c.data = 1;
  refused("early_recompute=4: weipipe rebuilds a stage when its weights come by; leave it out");
}

}  // namespace
}  // namespace pipelab
