// What recomputation of some blocks, and of several at a time, costs and saves.
#include <string>
#include <utility>

#include "gtest/gtest.h"
#include "pipelines/step/step.h"
#include "tests/support/step_testing.h"
#include "tools/base/status_matchers.h"

namespace pipelab {
namespace {

using RebuiltBlocksTest = StepTest;  // 16 blocks

StepConfig RebuiltConfig(const std::string& scheme, int pipeline, int data, int micro_batches) {
  StepConfig c;
  c.scheme = scheme;
  c.pipeline = pipeline;
  c.data = data;
  c.micro_batches = micro_batches;
  return c;
}

// N blocks at a time: only the first one's input is kept, and all N are there while rebuilt.
// The time is that of the forwards, whatever their groups.
TEST_F(RebuiltBlocksTest, BlocksAreRebuiltTogether) {
  StepConfig c = RebuiltConfig("1f1b", 2, 1, 1);
  c.micro_batches = 8;
  c.recompute = Recompute::kBlocks;
  const auto one = PredictStep(grid_, c);
  ASSERT_THAT(one, IsOk());
  const auto kept = [](const StepPrediction& p) { return p.step.costs.stages[1].memory.kept; };
  const auto peak = [](const StepPrediction& p) {
    return p.step.costs.stages[1].memory.backward_peak;
  };
  Bytes kept_before = kept(*one), peak_before = peak(*one);
  for (c.rebuilt_together = 2; c.rebuilt_together <= 8; c.rebuilt_together *= 2) {
    const auto more = PredictStep(grid_, c);
    ASSERT_THAT(more, IsOk());
    EXPECT_EQ(more->step_time, one->step_time) << c.rebuilt_together;
    EXPECT_LT(kept(*more), kept_before) << c.rebuilt_together;
    EXPECT_GT(peak(*more), peak_before) << c.rebuilt_together;
    kept_before = kept(*more);
    peak_before = peak(*more);
  }
  // As many as a stage has are rebuilt as a whole stage is, but in the backward.
  const auto all = PredictStep(grid_, c);
  ASSERT_THAT(all, IsOk());
  EXPECT_EQ(kept(*all), kept_before);
  // Five of eight and the other three: two inputs, as of groups of four.
  c.rebuilt_together = 5;
  const auto five = PredictStep(grid_, c);
  c.rebuilt_together = 4;
  EXPECT_EQ(kept(*five), kept(*PredictStep(grid_, c)));
  EXPECT_GT(peak(*five), peak(*PredictStep(grid_, c)));
}

// Every k-th block of a stage costs what as many first ones do.
TEST_F(RebuiltBlocksTest, EveryFewthBlockIsRebuilt) {
  StepConfig c = RebuiltConfig("1f1b", 2, 1, 1);
  c.micro_batches = 4;
  c.recompute = Recompute::kBlocks;
  for (const auto& [every, first] :
       {std::make_pair(1, 8), std::make_pair(2, 4), std::make_pair(3, 2), std::make_pair(8, 1)}) {
    StepConfig same = c;
    c.rebuilt_every = every;
    same.rebuilt_every = 1;
    same.rebuilt_blocks = first;
    const auto a = PredictStep(grid_, c), b = PredictStep(grid_, same);
    ASSERT_THAT(a, IsOk());
    ASSERT_THAT(b, IsOk());
    for (int stage = 0; stage < 2; ++stage) {
      const StageCost &x = a->step.costs.stages[stage], &y = b->step.costs.stages[stage];
      EXPECT_EQ(x.recompute, y.recompute) << every;
      EXPECT_EQ(x.memory.kept, y.memory.kept) << every;
    }
  }
  // Stages of one block each, on one device: every second of them.
  StepConfig one = RebuiltConfig("interleaved", 1, 1, 4), none_of_one = one;
  one.virtual_stages = none_of_one.virtual_stages = 16;
  one.recompute = Recompute::kBlocks;
  one.rebuilt_every = 2;
  const auto second = PredictStep(grid_, one);
  ASSERT_THAT(second, IsOk());
  int rebuilt = 0;
  for (const StageCost& stage : second->step.costs.stages) {
    rebuilt += stage.recompute > Nanoseconds(0);
  }
  EXPECT_EQ(rebuilt, 8);
  EXPECT_GT(second->step_time, PredictStep(grid_, none_of_one)->step_time);
  c.rebuilt_every = 9;  // no stage has so many
  const auto none = PredictStep(grid_, c);
  c.rebuilt_every = 1;
  c.recompute = Recompute::kNone;
  EXPECT_EQ(none->step_time, PredictStep(grid_, c)->step_time);
}

}  // namespace
}  // namespace pipelab
