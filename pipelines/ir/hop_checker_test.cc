#include "tests/support/hop_checker.h"

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "pipelines/ir/program.h"
#include "tests/support/test_schedules.h"

namespace pipelab {
namespace {

// A ring of two: stage 0's weights go from device 0, their owner, to device 1, and the sum of their
// gradients comes back.
TEST(HopChecker, FindsFaults) {
  Program p;
  p.schedule = ChainOf(2, {"0F0 0B0", "0F1 0B1"});
  p.schedule.stages = StageGraph::Chain(1);
  p.schedule.placement.groups = {{{0}}, {{1}}};
  p.schedule.placement.replica_of_micro_batch = {0, 1};
  p.schedule.weights_travel = true;
  p.sharding = Sharding::kFully;
  Message weights, gradients;
  weights.hop_of_stage = gradients.hop_of_stage = 0;
  weights.to_device = gradients.from_device = 1;
  gradients.gradient = true;
  p.messages = {weights, gradients};
  using Steps = std::vector<std::pair<int, Instruction>>;
  const auto op = [](int device, OpCode op, int32_t message) {
    Instruction i;
    i.op = op;
    i.arg = message;
    return std::make_pair(device, i);
  };
  const auto compute = [](int device, const std::string& action) {
    Instruction i;
    i.action = Actions(action)[0];
    i.op = i.action.kind == ActionKind::kStep ? OpCode::kStep : OpCode::kCompute;
    return std::make_pair(device, i);
  };
  const auto run = [&](const Steps& steps) {
    HopChecker hops(p);
    for (const auto& [device, instruction] : steps) {
      std::string error = hops.Run(device, instruction);
      if (!error.empty()) return error;
    }
    return hops.End();
  };
  const Steps good = {op(0, OpCode::kSend, 0), op(1, OpCode::kWait, 0),
                      compute(1, "0F1"),       compute(1, "0B1"),
                      compute(0, "0F0"),       compute(0, "0B0"),
                      op(1, OpCode::kSend, 1), op(1, OpCode::kRelease, 0),
                      op(0, OpCode::kWait, 1), compute(1, "0S"),
                      compute(0, "0S")};
  EXPECT_EQ(run(good), "");
  const auto without = [&](size_t at) {
    Steps steps = good;
    steps.erase(steps.begin() + static_cast<std::ptrdiff_t>(at));
    return run(steps);
  };
  const auto twice = [&](size_t at) {
    Steps steps = good;
    steps.insert(steps.begin() + static_cast<std::ptrdiff_t>(at),
                 std::make_pair(good[at].first, good[at].second));
    return run(steps);
  };
  const std::string early = " before its gradients are there, or keeps what it does not own";
  EXPECT_EQ(without(1), "device 1: 0F1 without its stage's weights");
  EXPECT_EQ(twice(1), "device 1, hop 0 of stage 0: brings weights that are there");
  EXPECT_EQ(without(3), "device 1, hop 1 of stage 0: sends no gradients");
  EXPECT_EQ(without(5), "device 0 steps stage 0" + early);
  EXPECT_EQ(twice(5), "device 0 steps stage 0" + early);
  EXPECT_EQ(without(6), "device 1 steps stage 0" + early);
  EXPECT_EQ(twice(6), "device 1, hop 1 of stage 0: sends no gradients");
  EXPECT_EQ(without(7), "device 1 steps stage 0" + early);
  EXPECT_EQ(twice(7), "device 1, hop 0 of stage 0: releases what is not there");
  EXPECT_EQ(without(8), "device 0 steps stage 0" + early);
  EXPECT_EQ(run({op(1, OpCode::kSend, 0)}),
            "device 1, hop 0 of stage 0: sends weights that are not there");
  // Weight gradients of a split backward count as those of a whole one; its input part has none.
  Steps split = good;
  split[5] = compute(0, "0W0");
  EXPECT_EQ(run(split), "");
  split[5] = compute(0, "0I0");
  EXPECT_EQ(run(split), "device 0 steps stage 0" + early);
  // Gradients that come behind the step of who passes them on; and nobody steps.
  EXPECT_EQ(run({op(0, OpCode::kSend, 0), compute(1, "0S"), op(1, OpCode::kSend, 1)}),
            "device 1, hop 1 of stage 0: comes behind the step");
  Steps no_step(good.begin(), good.end() - 2);
  EXPECT_EQ(run(no_step), "");
  no_step.erase(no_step.begin() + 7);
  EXPECT_EQ(run(no_step),
            "device 1 ends without the gradients of stage 0, or keeps what it does not own");
  p.schedule.weights_travel = false;
  EXPECT_EQ(without(1), "");
}

}  // namespace
}  // namespace pipelab
