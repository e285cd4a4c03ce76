// The checkers must be able to fail: each fault of a program that is right has its message.
#include "tests/support/program_checker.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "pipelines/ir/program.h"
#include "tests/support/collective_checker.h"
#include "tests/support/test_schedules.h"
#include "tools/base/status_matchers.h"

namespace pipelab {
namespace {

using testing::HasSubstr;

TEST(ProgramChecker, FindsFaults) {
  PIPELAB_ASSERT_OK_AND_ASSIGN(const Program good,
                               Lower(ChainOf(2, {"0F0 0F1 0B0 0B1", "1F0 1B0 1F1 1B1"}), {}));
  ASSERT_EQ(CheckProgram(good), "");
  Program p = good;
  std::swap(p.instructions[0][3], p.instructions[0][4]);  // waits for 1B0 before it sends 0F1
  EXPECT_THAT(CheckProgram(p), HasSubstr("device 0 is stuck at 3: receive 1B0"));
  p = good;  // receives of a pair in another order than its sends
  std::swap(p.instructions[1][0], p.instructions[1][3]);
  EXPECT_THAT(CheckProgram(p), HasSubstr("order"));
  p = good;
  p.instructions[1].erase(p.instructions[1].begin() + 1);  // no wait for 0F0
  EXPECT_THAT(CheckProgram(p), HasSubstr("1F0"));
}

using List = std::vector<Instruction>;

// The fault of a program whose device 0 has another list.
std::string Edited(const Program& good, const std::function<void(List&)>& edit) {
  Program p = good;
  edit(p.instructions[0]);
  return CheckProgram(p);
}

std::function<void(List&)> Without(int at) {
  return [=](List& l) { l.erase(l.begin() + at); };
}
std::function<void(List&)> Swapped(int a, int b) {
  return [=](List& l) { std::swap(l[a], l[b]); };
}
std::function<void(List&)> Twice(int at) {
  return [=](List& l) { l.insert(l.begin() + at, Instruction(l[at])); };
}
std::function<void(List&)> Moved(int from, int to) {
  return [=](List& l) {
    const Instruction i = l[from];
    l.erase(l.begin() + from);
    l.insert(l.begin() + to, i);
  };
}

TEST(ProgramChecker, FindsFaultsOfMessages) {
  // 0F0 send 0F1 send receive wait 0B0 receive wait 0B1 step
  PIPELAB_ASSERT_OK_AND_ASSIGN(const Program good,
                               Lower(ChainOf(2, {"0F0 0F1 0B0 0B1", "1F0 1B0 1F1 1B1"}), {}));
  EXPECT_EQ(Edited(good, [](List& l) { std::swap(l[1].arg, l[4].arg); }),
            "message on a wrong device");
  EXPECT_EQ(Edited(good, Without(1)), "a pair receives in another order than it sends");
  EXPECT_EQ(Edited(good, Without(5)),
            "message 2 for 0B0 is not sent, posted and waited for exactly once");
  EXPECT_EQ(Edited(good, Twice(5)),
            "message 2 for 0B0 is not sent, posted and waited for exactly once");
  EXPECT_EQ(Edited(good, Without(9)), "device 0 does not compute the schedule's list");
  EXPECT_EQ(Edited(good, Swapped(0, 2)), "device 0 does not compute the schedule's list");
  EXPECT_EQ(Edited(good, Moved(6, 4)), "device 0: 0B0 runs without all rows of edge 0");
  EXPECT_EQ(Edited(good, Swapped(5, 6)), "device 0: 0B0 runs without all rows of edge 0");
  EXPECT_EQ(Edited(good, Swapped(0, 1)), "device 0 sends what 0F0 has not made");
  EXPECT_EQ(Edited(good, [](List& l) { l[1].action.micro_batch = 1; }),
            "device 0: send 0 is not of 0F1");
  EXPECT_EQ(Edited(good, [](List& l) { l[4].action.stage = 0; }),
            "device 0: receive 2 is not of 0B0");
  EXPECT_EQ(Edited(good, [](List& l) { l[0].replica = 1; }), "wrong replica");
  Program p = good;
  p.messages[0].to_device = 0;
  EXPECT_EQ(CheckProgram(p), "a message to itself");
  const auto in_order = [](const std::vector<Action>& order) {
    Program p = Lower(ChainOf(1, {"0F0 0I0 0W0"}), {}).value();
    p.schedule.order[0] = order;
    for (int i = 0; i < 3; ++i) p.instructions[0][i].action = order[i];
    return CheckProgram(p);
  };
  EXPECT_EQ(in_order(Actions("0F0 0I0 0W0")), "");
  EXPECT_EQ(in_order(Actions("0I0 0F0 0W0")), "0I0 without its forward");
  EXPECT_EQ(in_order(Actions("0F0 0W0 0I0")), "0W0 without its input part");
}

TEST(ProgramChecker, FindsFaultsOfRows) {
  Schedule s = ChainOf(1, {"0F0 0B0", "0F0 0B0", "1F0 1B0"});
  s.stages = StageGraph::Chain(2);
  s.placement.groups = {{{0, 1}, {2}}};
  PIPELAB_ASSERT_OK_AND_ASSIGN(const Program good, Lower(s, {}));
  ASSERT_EQ(CheckProgram(good), "");
  const auto second =
      std::find_if(good.messages.begin(), good.messages.end(),
                   [](const Message& m) { return m.from_device == 1 && m.row_begin == 1; });
  ASSERT_NE(second, good.messages.end());
  Program p = good;
  Message& m = p.messages[second - good.messages.begin()];
  m.row_begin = 0;
  m.row_end = 1;
  EXPECT_EQ(CheckProgram(p), "1F0 gets rows twice");
  m.row_begin = 2;
  m.row_end = 3;
  m.row_parts = 3;
  EXPECT_EQ(CheckProgram(p), "1F0 gets a part of a unit");
}

TEST(ProgramChecker, FindsFaultsOfCalls) {
  LoweringOptions options;
  options.calls = MessageCalls::kOneNeighbour;
  // 0F0 send sync 0F1 receive send wait sync 0B0 receive wait sync 0B1 step
  PIPELAB_ASSERT_OK_AND_ASSIGN(const Program good,
                               Lower(ChainOf(2, {"0F0 0F1 0B0 0B1", "1F0 1B0 1F1 1B1"}), options));
  ASSERT_EQ(CheckProgram(good), "");
  EXPECT_EQ(Edited(good, Without(2)), "device 0: compute 0F1 in call 0, which it is not of");
  EXPECT_EQ(Edited(good, Swapped(6, 7)), "device 0: wait 1B0 in call 2, which it is not of");
  EXPECT_EQ(Edited(good, Moved(4, 2)), "device 0: wait 1B0 in call 1, which it is not of");
  EXPECT_EQ(Edited(good, Twice(2)), "device 0: call 0 is out of order");
  EXPECT_EQ(Edited(good, [](List& l) { l.erase(l.begin() + 11, l.end()); }),
            "device 0 does not end its last call");
}

TEST(ProgramChecker, FindsFaultsOfSteps) {
  // 0F0 send 0F1 send receive wait 0B0 receive wait 0B1 step
  PIPELAB_ASSERT_OK_AND_ASSIGN(const Program good,
                               Lower(ChainOf(2, {"0F0 0F1 0B0 0B1", "1F0 1B0 1F1 1B1"}), {}));
  EXPECT_EQ(Edited(good, Swapped(9, 10)), "device 0: 0B1 behind its stage's step");
  EXPECT_EQ(Edited(good, Without(10)), "device 0: stage 0 steps 0 times");
  EXPECT_EQ(Edited(good, Twice(10)), "device 0: stage 0 steps 2 times");
  EXPECT_EQ(Edited(good, [](List& l) { l[10].action.stage = 1; }),
            "device 0: step -1 is not of stage 1 here");
  // 0F0 0B0 0S 0F1 0B1 0S: the steps are the schedule's
  PIPELAB_ASSERT_OK_AND_ASSIGN(const Program own,
                               Lower(ChainOf(2, {"0F0 0B0 0S@1 0F1@1 0B1@1 0S@2"}), {}));
  ASSERT_EQ(CheckProgram(own), "");
  EXPECT_EQ(Edited(own, Swapped(2, 3)), "device 0 does not compute the schedule's list");
  EXPECT_EQ(Edited(own, Without(5)), "device 0 does not compute the schedule's list");
}

// Workers that prepare, and one copy of what is trained, whatever is sharded.
TEST(ProgramChecker, KnowsCopiesThatReplicasShare) {
  for (const Schedule& s : OtherSchedules()) {
    if (s.prepares.empty()) continue;
    for (const Sharding sharding :
         {Sharding::kReplicated, Sharding::kOptimizer, Sharding::kGradients, Sharding::kFully}) {
      LoweringOptions options;
      options.sharding = sharding;
      options.norm_values = 1;
      PIPELAB_ASSERT_OK_AND_ASSIGN(const Program p, Lower(s, options));
      EXPECT_EQ(CheckProgram(p), "") << ShardingName(sharding);
      EXPECT_TRUE(p.reductions.empty()) << ShardingName(sharding);
    }
  }
}

TEST(ProgramChecker, FindsFaultsOfCopiesToTheHost) {
  // 0F0 O0 0F1 wait O1 wait L1 wait 0I1 L0 0W1 wait 0I0 0W0 step
  PIPELAB_ASSERT_OK_AND_ASSIGN(const Program good,
                               Lower(ChainOf(2, {"0F0 0O0 0F1 0O1 0L1 0I1 0L0 0W1 0I0 0W0"}), {}));
  ASSERT_EQ(CheckProgram(good), "");
  EXPECT_EQ(Edited(good, Swapped(3, 4)), "device 0: offload 1 begins before offload 0 is over");
  EXPECT_EQ(Edited(good, Without(11)), "device 0 does not wait for all copies to the host");
  EXPECT_EQ(Edited(good, Twice(11)), "device 0: host_wait 3 waits for no copy");
  EXPECT_EQ(Edited(good, [](List& l) { l[3].action = l[4].action; }),
            "device 0: host_wait 0 waits for no copy");
  EXPECT_EQ(Edited(good, [](List& l) { l[1].op = OpCode::kReload; }),
            "device 0: reload 0 is of another kind than 0O0");
  EXPECT_EQ(Edited(good,
                   [](List& l) {
                     for (int at : {6, 7}) l[at].arg = 3;
                     for (int at : {9, 11}) l[at].arg = 2;
                   }),
            "device 0: reload 3 is out of order");
  EXPECT_EQ(Edited(good, Swapped(11, 12)), "0I0 runs while its activations are at the host");
  EXPECT_EQ(Edited(good, Swapped(0, 1)), "device 0 does not compute the schedule's list");
  Program p = good;
  std::swap(p.instructions[0][0], p.instructions[0][1]);
  std::swap(p.schedule.order[0][0], p.schedule.order[0][1]);
  EXPECT_EQ(CheckProgram(p), "0O0 without its forward");
}

TEST(ProgramChecker, FindsFaultsOfFills) {
  PIPELAB_ASSERT_OK_AND_ASSIGN(Program good, Lower(ChainOf(1, {"0F0 0B0"}), {}));
  good.fills.resize(2);
  good.fills[1].time = good.fills[1].work = Nanoseconds(5);
  for (const int32_t fill : {0, 1}) {
    Instruction i;
    i.op = OpCode::kFill;
    i.arg = fill;
    good.instructions[0].insert(good.instructions[0].begin() + fill, i);
  }
  ASSERT_EQ(CheckProgram(good), "");
  EXPECT_EQ(Edited(good, [](List& l) { l[0].arg = 2; }), "device 0 has fill 2 of 2");
  EXPECT_EQ(Edited(good, [](List& l) { l[0].arg = -1; }), "device 0 has fill -1 of 2");
  EXPECT_EQ(Edited(good, [](List& l) { l[0].arg = 1; }), "fill 1 is there twice");
  EXPECT_EQ(Edited(good, Without(1)), "fill 1 is on no device");
  Program p = good;
  p.fills[1].work = Nanoseconds(6);
  EXPECT_EQ(CheckProgram(p), "fill 1 plans 6 ns and may take 5");
  p = good;
  p.fills[0].bytes = Bytes(-1);
  EXPECT_EQ(CheckProgram(p), "fill 0 has less than no room");
  p = good;
  p.fills[0].time = Nanoseconds(-1);
  EXPECT_EQ(CheckProgram(p), "fill 0 has less than no room");
}

// The fault of one device in its collectives, without running the others.
std::string Collectives(const Program& good, const std::function<void(List&)>& edit) {
  Program p = good;
  edit(p.instructions[0]);
  return CheckCollectives(p);
}

TEST(CollectiveChecker, FindsFaultsOfSharedWeights) {
  const Schedule s = OneStageOnFour();
  LoweringOptions options;
  options.sharding = Sharding::kFully;
  options.shards = 2;
  options.norm_values = 1;
  // gather wait 0F0 0B0 release reduce wait reduce wait norm wait step
  PIPELAB_ASSERT_OK_AND_ASSIGN(const Program good, Lower(s, options));
  ASSERT_EQ(CheckCollectives(good), "");
  // The sum between sets takes what the set has summed, and all of it.
  EXPECT_EQ(Collectives(good, Moved(7, 5)),
            "device 0: sums parts of stage 0 before its last run is in them");
  EXPECT_EQ(Collectives(good, Swapped(6, 7)),
            "device 0: sums parts of stage 0 before its last run is in them");
  EXPECT_EQ(Collectives(good, Without(8)), "device 0: takes the norm before the sum of stage 0");
  EXPECT_EQ(Collectives(good, [](List& l) { l[7].action.stage = 1; }),
            "device 0: reduce 2 is not of stage 1 here");
  EXPECT_EQ(Collectives(good, Moved(7, 9)), "device 0: awaits reduction 2 before it begins");
  EXPECT_EQ(Collectives(good, [](List& l) { l.insert(l.begin() + 10, l[7]); }),
            "device 0: sums gradients whose norm is taken already");
  EXPECT_EQ(Collectives(good, Swapped(0, 1)), "device 0: awaits gather 0 before it begins");
  EXPECT_EQ(Collectives(good, Without(1)), "device 0: 0F0 without its stage's weights");
  EXPECT_EQ(Collectives(good, Moved(4, 3)), "device 0: 0B0 without its stage's weights");
  EXPECT_EQ(Collectives(good, [](List& l) { l.insert(l.begin() + 2, l[0]); }),
            "device 0: gathers stage 0, which is there");
  EXPECT_EQ(Collectives(good, Twice(4)), "device 0: releases stage 0, which is not there");
  EXPECT_EQ(Collectives(good, [](List& l) { l[4].arg = 1; }),
            "device 0: releases stage 0, which is not there");
  EXPECT_EQ(Collectives(good, Without(4)),
            "device 0: steps stage 0 while its weights are put together");
  options.norm_values = 0;
  PIPELAB_ASSERT_OK_AND_ASSIGN(const Program plain, Lower(s, options));
  EXPECT_EQ(Collectives(plain, Swapped(8, 9)), "device 0: steps stage 0 before its sum is there");
  EXPECT_EQ(Collectives(plain, Moved(9, 7)), "device 0: sums stage 0 behind its step");
  options.step = false;
  PIPELAB_ASSERT_OK_AND_ASSIGN(const Program no_step, Lower(s, options));
  EXPECT_EQ(Collectives(no_step, Without(4)), "device 0: stage 0's weights are never released");
}

TEST(CollectiveChecker, FindsFaultsOfGradientsAndSteps) {
  Schedule s = ChainOf(1, {"0F0 0B0", "0F0 0B0"});
  s.stages = StageGraph::Chain(1);
  s.placement.groups = {{{0, 1}}};
  // 0F0 0B0 reduce wait step
  PIPELAB_ASSERT_OK_AND_ASSIGN(const Program good, Lower(s, {}));
  ASSERT_EQ(CheckCollectives(good), "");
  EXPECT_EQ(Collectives(good, Swapped(1, 2)),
            "device 0: 0B0 adds to gradients that are summed already");
  EXPECT_EQ(Collectives(good, Swapped(3, 4)), "device 0: steps stage 0 before its sum is there");
  EXPECT_EQ(Collectives(good, Moved(4, 2)), "device 0: steps stage 0 before its sum is there");
  EXPECT_EQ(Collectives(good, Without(3)), "device 0: steps stage 0 before its sum is there");
  EXPECT_EQ(Collectives(good, [](List& l) { l.erase(l.begin() + 3, l.end()); }),
            "device 0: reduction 0 begins 1 times and is awaited 0 times");
  Program p = good;
  p.reductions[0].scatter = true;
  EXPECT_EQ(CheckCollectives(p), "device 0: scatters whole gradients");
  // Only the optimizer's parts: the new values are put together after the step.
  LoweringOptions options;
  options.sharding = Sharding::kOptimizer;
  // 0F0 0B0 reduce wait step gather wait
  PIPELAB_ASSERT_OK_AND_ASSIGN(const Program parts, Lower(s, options));
  ASSERT_EQ(CheckCollectives(parts), "");
  EXPECT_EQ(Collectives(parts, Swapped(4, 5)), "device 0: gathers stage 0 before its step");
  EXPECT_EQ(Collectives(parts, [](List& l) { l.resize(5); }),
            "device 0: gather 0 begins 0 times and is awaited 0 times");
  // A tie makes one gradient of the two stages'.
  options = LoweringOptions();
  options.ties = {{"embedding", {0, 1}}};
  // 0F0 send receive wait 0B0 reduce wait step
  PIPELAB_ASSERT_OK_AND_ASSIGN(const Program tied,
                               Lower(ChainOf(1, {"0F0 0B0", "1F0 1B0"}), options));
  ASSERT_EQ(CheckCollectives(tied), "");
  EXPECT_EQ(Collectives(tied, Moved(5, 4)),
            "device 0: 0B0 adds to embedding, which is summed already");
  EXPECT_EQ(Collectives(tied, Swapped(6, 7)),
            "device 0: steps stage 0 before the sum of embedding");
}

// Two copies of a stage whose sums leave one out, or take two stages together.
TEST(CollectiveChecker, FindsFaultsOfMembers) {
  Schedule s = ChainOf(1, {"0F0 0B0", "0F0 0B0", "0F0 0B0"});
  s.stages = StageGraph::Chain(1);
  s.placement.groups = {{{0, 1, 2}}};
  PIPELAB_ASSERT_OK_AND_ASSIGN(const Program good, Lower(s, {}));
  ASSERT_EQ(CheckCollectives(good), "");
  Program p = good;
  p.reductions[0].members.pop_back();
  p.reductions.push_back({"", {{2, 0, 0}}});
  for (const int at : {2, 3}) p.instructions[2][at].arg = 1;
  EXPECT_EQ(CheckCollectives(p), "stage 0 is not summed over all copies that share it");
  p = good;
  p.reductions[0].members.push_back({0, 0, 1});
  EXPECT_EQ(CheckCollectives(p), "a sum of several stages");
  LoweringOptions options;
  options.norm_values = 1;
  PIPELAB_ASSERT_OK_AND_ASSIGN(p, Lower(s, options));
  ASSERT_EQ(CheckCollectives(p), "");
  p.norm->members.push_back({0, 0, 0});
  EXPECT_EQ(CheckCollectives(p), "the norm is not summed over all copies");
  options.sharding = Sharding::kFully;
  PIPELAB_ASSERT_OK_AND_ASSIGN(p, Lower(s, options));
  ASSERT_EQ(CheckCollectives(p), "");
  p.devices_per_member = 2;  // the norm has the parts of half of the devices
  EXPECT_EQ(CheckCollectives(p), "the norm has not each part of stage 0 once");
  options = LoweringOptions();
  options.norm_values = 1;
  options.ties = {{"embedding", {0, 1}}};
  PIPELAB_ASSERT_OK_AND_ASSIGN(p, Lower(ChainOf(1, {"0F0 0B0", "1F0 1B0"}), options));
  ASSERT_EQ(CheckCollectives(p), "");
  p.reductions[0].members[0].replica = 1;  // a copy that there is not
  for (const int at : {5, 6}) p.instructions[0][at].replica = 1;
  EXPECT_EQ(CheckCollectives(p), "the norm has embedding 0 times");
}

TEST(ProgramChecker, FindsFaultsOfTheNorm) {
  LoweringOptions options;
  options.norm_values = 5;
  options.ties = {{"embedding", {0, 1}}};
  PIPELAB_ASSERT_OK_AND_ASSIGN(const Program good,
                               Lower(ChainOf(1, {"0F0 0B0", "1F0 1B0"}), options));
  ASSERT_EQ(CheckProgram(good), "");
  // Device 0's list ends in reduce, reduce_wait, norm, norm_wait, step.
  const size_t n = good.instructions[0].size();
  ASSERT_EQ(good.instructions[0][n - 3].op, OpCode::kNorm);
  const auto edited = [&](auto edit) {
    Program p = good;
    edit(p.instructions[0]);
    return CheckProgram(p);
  };
  EXPECT_THAT(edited([&](List& l) { l.erase(l.begin() + n - 3, l.begin() + n - 1); }),
              HasSubstr("steps before the norm is there"));
  EXPECT_THAT(edited([&](List& l) { l.erase(l.begin() + n - 2); }),
              HasSubstr("steps before the norm is there"));
  EXPECT_THAT(edited([&](List& l) { l.erase(l.begin() + n - 3); }),
              HasSubstr("awaits the norm before it begins"));
  EXPECT_THAT(edited([&](List& l) {
                l.insert(l.begin() + n - 2, {l[n - 3], l[n - 2]});
              }),
              HasSubstr("norm 0 begins 2 times"));
  EXPECT_THAT(edited([&](List& l) { std::swap(l[n - 4], l[n - 3]); }),
              HasSubstr("takes the norm before the sum of embedding"));
  EXPECT_THAT(edited([&](List& l) { std::swap(l[n - 2], l[n - 1]); }),
              HasSubstr("steps before the norm is there"));
  Program p = good;  // a copy that nobody sums
  p.norm->members.pop_back();
  EXPECT_EQ(CheckProgram(p), "device 1: norm 0 is not of stage 1 here");
  options.ties.clear();
  PIPELAB_ASSERT_OK_AND_ASSIGN(p, Lower(ChainOf(1, {"0F0 0B0"}), options));
  std::swap(p.instructions[0][1], p.instructions[0][2]);
  EXPECT_THAT(CheckProgram(p), HasSubstr("0B0 adds to gradients whose norm is taken already"));
}

}  // namespace
}  // namespace pipelab
