// Steps of devices that divide each sample's tokens.
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "pipelines/cluster/rank_network.h"
#include "pipelines/step/step.h"
#include "tests/support/grouped_step.h"
#include "tools/base/status_matchers.h"

namespace pipelab {
namespace {

using testing::HasSubstr;

// Devices with parts of the same samples sum gradients and shard like copies: the same state, sums
// and places as of as many copies. Messages have their tokens alone.
TEST_F(GroupedStepTest, ContextParallelDevicesShardAsCopiesDo) {
  StepModel all = grid_;
  all.fold_data = false;
  for (const Sharding sharding :
       {Sharding::kReplicated, Sharding::kOptimizer, Sharding::kGradients, Sharding::kFully}) {
    StepConfig c = Config("1f1b", 4, 2, 8), copies = Config("1f1b", 4, 4, 8);
    c.context = 2;
    c.sharding = copies.sharding = sharding;
    SCOPED_TRACE(c.ToString());
    EXPECT_EQ(c.devices(), copies.devices());
    const StepPrediction parts = Evaluate(c), whole = Evaluate(copies);
    ASSERT_EQ(parts.devices.size(), whole.devices.size());
    for (size_t d = 0; d < parts.devices.size(); ++d) {
      EXPECT_EQ(parts.devices[d].peak_state, whole.devices[d].peak_state);
      EXPECT_EQ(parts.devices[d].collective, whole.devices[d].collective);
      EXPECT_EQ(parts.devices[d].sent * 2, whole.devices[d].sent);
      EXPECT_LT(parts.devices[d].peak_activation, whole.devices[d].peak_activation);
      EXPECT_GT(parts.devices[d].tensor, Bytes(0));
    }
    PIPELAB_ASSERT_OK_AND_ASSIGN(const StepPrediction every, PredictStep(all, c));
    EXPECT_EQ(parts.step_time, every.step_time);
    EXPECT_EQ(parts.largest_device, every.largest_device);
  }
}

// A step of one stage by hand, with a third device for the sums: passes with their gathers, and the
// optimizer. Keys and values go over the links that the place of the ranks gives them.
TEST_F(GroupedStepTest, ContextParallelPassesGatherKeysAndValues) {
  StepConfig c = Config("gpipe", 1, 1, 1);
  c.context = 2;
  const auto passes = [&](const StepPrediction& p) {
    const StageCost& s = p.step.costs.stages[0];
    return s.forward + s.backward_input + s.backward_weight + s.step;
  };
  const StepPrediction p = Evaluate(c);
  EXPECT_GT(p.step_time, passes(p));  // the sum of the gradients
  // 16 layers of q, k, v with 1024 columns each, 512 tokens, 4 bytes a number in cost tables; one
  // gather forward, a gather and a scatter backward.
  const int64_t keys = int64_t{512} * 2 * 1024 * BytesOf(grid_.type);
  EXPECT_EQ(p.devices[0].tensor, Bytes(16 * 3 * keys / 2));
  const auto group = [&](int tensor, int context) {
    StepConfig of = c;
    of.tensor = tensor;
    of.context = context;
    return TensorGroupOf(grid_, of);
  };
  const TensorGroup near = group(2, 4);
  EXPECT_EQ(near.context_hop.bandwidth, RingStep(cluster_, {4, 2}).bandwidth);
  const TensorGroup far = group(8, 2);  // nodes of 8
  EXPECT_LT(far.context_hop.bandwidth.value(), near.context_hop.bandwidth.value());
}

TEST_F(GroupedStepTest, ContextParallelRefusals) {
  const auto message = [&](StepConfig c, int context, int tensor = 1) {
    c.context = context;
    c.tensor = tensor;
    return std::string(PredictStep(grid_, c).status().message());
  };
  const StepConfig c = Config("1f1b", 2, 1, 2);
  EXPECT_THAT(message(c, 0), HasSubstr("C=0: must be at least 1"));
  EXPECT_THAT(message(c, 3),
              HasSubstr("C=3: twice it must divide the 512 tokens of layer \"embedding\", for a "
                        "causal mask; the nearest that does is 2"));
  EXPECT_THAT(message(Config("1f1b", 32, 8, 32), 8),
              HasSubstr("P=32 x T=1 x C=8 x D=8 is 2048 devices"));
  StepConfig rows = c;
  rows.sequence_parallel = true;
  EXPECT_THAT(message(rows, 64, 16), HasSubstr("C=64: the 8 tokens of layer \"embedding\" that a "
                                               "device has must divide among"));
}

}  // namespace
}  // namespace pipelab
