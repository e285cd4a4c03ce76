// What Lower promises, shown by an executor that shares no code with it: sends that wait for their
// receiver never deadlock, pairs receive in the order in which they send, inputs are there, and
// copies agree.
#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "pipelines/ir/program.h"
#include "pipelines/ir/program_checker.h"
#include "pipelines/ir/test_schedules.h"
#include "tools/base/status_matchers.h"

namespace pipelab {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

std::vector<std::string> Words(const Program& p, int device) {
  std::vector<std::string> words;
  for (const Instruction& i : p.instructions[device]) {
    std::string word = std::string(OpCodeName(i.op)) + " " + ToString(i.action);
    if (i.op == OpCode::kSend) word += " to " + std::to_string(p.messages[i.arg].to_device);
    words.push_back(word);
  }
  return words;
}

TEST(Lower, PostsReceivesWhereTheirSendsAreInTheGlobalOrder) {
  PIPELAB_ASSERT_OK_AND_ASSIGN(Program p,
                               Lower(ChainOf(2, {"0F0 0F1 0B0 0B1", "1F0 1B0 1F1 1B1"}), {}));
  EXPECT_THAT(Words(p, 0), ElementsAre("compute 0F0", "send 0F0 to 1", "compute 0F1",
                                       "send 0F1 to 1", "receive 1B0", "wait 1B0", "compute 0B0",
                                       "receive 1B1", "wait 1B1", "compute 0B1", "step 0S"));
  EXPECT_THAT(Words(p, 1), ElementsAre("receive 0F0", "wait 0F0", "compute 1F0", "receive 0F1",
                                       "compute 1B0", "send 1B0 to 0", "wait 0F1", "compute 1F1",
                                       "compute 1B1", "send 1B1 to 0", "step 1S"));
}

// An offload is over before the next copy begins, a reload before its backward.
TEST(Lower, WaitsForCopiesWherePeaksAreToFollow) {
  PIPELAB_ASSERT_OK_AND_ASSIGN(const Program p,
                               Lower(ChainOf(2, {"0F0 0O0 0F1 0O1 0L1 0I1 0L0 0W1 0I0 0W0"}), {}));
  EXPECT_THAT(Words(p, 0), ElementsAre("compute 0F0", "offload 0O0", "compute 0F1", "host_wait 0O0",
                                       "offload 0O1", "host_wait 0O1", "reload 0L1",
                                       "host_wait 0L1", "compute 0I1", "reload 0L0", "compute 0W1",
                                       "host_wait 0L0", "compute 0I0", "compute 0W0", "step 0S"));
  EXPECT_EQ(CheckProgram(p), "");
}

TEST(Lower, KeepsItsPromisesForAllShapes) {
  uint64_t seed = 0;
  for (const RandomShape& shape : Shapes()) {
    for (int i = 0; i < 10; ++i) {
      PIPELAB_ASSERT_OK_AND_ASSIGN(Program p, Lower(RandomOrder(shape, ++seed), {}));
      EXPECT_EQ(CheckProgram(p), "") << "seed " << seed;
    }
  }
}

// A chain's order serves a partition with a skip; edges are the partition's.
TEST(Lower, TakesThePartitionsEdges) {
  const Schedule chain = ChainOf(1, {"0F0 0B0", "1F0 1B0", "2F0 2B0"});
  LoweringOptions options;
  options.stages = StageGraph::FromEdges(3, {{0, 1}, {0, 2}, {1, 2}});
  PIPELAB_ASSERT_OK_AND_ASSIGN(const Program p, Lower(chain, options));
  EXPECT_EQ(CheckProgram(p), "");
  EXPECT_EQ(p.schedule.stages.edges.size(), 3u);
  EXPECT_THAT(Words(p, 0),
              ElementsAre("compute 0F0", "send 0F0 to 1", "send 0F0 to 2", "receive 2B0",
                          "receive 1B0", "wait 1B0", "wait 2B0", "compute 0B0", "step 0S"));
  const auto error = [&](const Schedule& s, StageGraph stages) {
    options.stages = std::move(stages);
    return std::string(Lower(s, options).status().message());
  };
  EXPECT_EQ(error(chain, StageGraph::Chain(2)),
            "the layers are in 2 stages, but the schedule has 3");
  EXPECT_EQ(error(chain, StageGraph::FromEdges(3, {{0, 1}, {2, 1}})),
            "edge 2-1 of the layers' stages leads back, and the schedule is of a chain");
  // Any other graph is the partition's own.
  EXPECT_EQ(error(p.schedule, p.schedule.stages), "");
  EXPECT_EQ(error(p.schedule, StageGraph::FromEdges(3, {{0, 1}, {0, 2}})),
            "edge 1-2 of the stage graph is in the schedule, and not in the layers' stages");
  Schedule fork = chain;
  fork.stages = StageGraph::FromEdges(3, {{0, 1}, {0, 2}});
  EXPECT_EQ(error(fork, p.schedule.stages),
            "edge 1-2 of the stage graph is in the layers' stages, and not in the schedule");
}

TEST(Lower, LocalEdgesMakeNoMessage) {
  Schedule s = ChainOf(1, {"0F0 1F0 1B0 0B0", ""});
  s.placement.groups[0][1] = {0};
  PIPELAB_ASSERT_OK_AND_ASSIGN(Program p, Lower(s, {}));
  EXPECT_TRUE(p.messages.empty());
  EXPECT_THAT(Words(p, 0), ElementsAre("compute 0F0", "compute 1F0", "compute 1B0", "compute 0B0",
                                       "step 0S", "step 1S"));
}

TEST(Lower, CutsRowsBetweenGroups) {
  Schedule s = ChainOf(1, {"0F0 0B0", "0F0 0B0", "1F0 1B0", "1F0 1B0", "1F0 1B0"});
  s.stages = StageGraph::Chain(2);
  s.placement.groups = {{{0, 1}, {2, 3, 4}}};
  PIPELAB_ASSERT_OK_AND_ASSIGN(Program p, Lower(s, {}));
  std::set<std::tuple<int, int, int, int>> rows;  // activations: from, to, begin, end in sixths
  for (const Message& m : p.messages) {
    EXPECT_EQ(m.row_parts, 6);
    if (!m.gradient) rows.insert({m.from_device, m.to_device, m.row_begin, m.row_end});
  }
  EXPECT_THAT(rows, ElementsAre(std::make_tuple(0, 2, 0, 2), std::make_tuple(0, 3, 2, 3),
                                std::make_tuple(1, 3, 3, 4), std::make_tuple(1, 4, 4, 6)));
  ASSERT_EQ(p.reductions.size(), 2u);
  EXPECT_EQ(p.reductions[1].members.size(), 3u);
}

TEST(Lower, OrdersReductionsAndTheirMembers) {
  // Two directions over three devices, and an embedding tied to the head.
  Schedule s = ChainOf(2, {"0F0 0B0", "1F0 1B0", "2F0 2B0"});
  s.placement.groups.push_back({{2}, {1}, {0}});
  s.placement.replica_of_micro_batch = {0, 1};
  s.order = {Actions("0F0 2F1 2B1 0B0"), Actions("1F0 1F1 1B0 1B1"), Actions("0F1 2F0 2B0 0B1")};
  LoweringOptions options;
  options.ties = {{"embedding", {2, 0, 2}}, {"alone", {1}}};
  PIPELAB_ASSERT_OK_AND_ASSIGN(Program p, Lower(s, options));
  EXPECT_EQ(CheckProgram(p), "");
  const auto members = [&](int r) {
    std::vector<std::tuple<int, int, int>> m;  // stage, replica, device
    for (const StageCopy& x : p.reductions[r].members) {
      m.emplace_back(x.stage, x.replica, x.device);
    }
    return m;
  };
  using T = std::tuple<int, int, int>;
  ASSERT_EQ(p.reductions.size(), 5u);
  EXPECT_THAT(members(0), ElementsAre(T(0, 0, 0), T(0, 1, 2)));
  EXPECT_THAT(members(1), ElementsAre(T(1, 0, 1), T(1, 1, 1)));
  EXPECT_THAT(members(2), ElementsAre(T(2, 0, 2), T(2, 1, 0)));
  EXPECT_EQ(p.reductions[3].parameter, "embedding");
  EXPECT_THAT(members(3), ElementsAre(T(0, 0, 0), T(0, 1, 2), T(2, 0, 2), T(2, 1, 0)));
  EXPECT_EQ(p.reductions[4].parameter, "alone");
  // Both copies of stage 1 are on device 1: it takes part once, and steps each copy.
  int reduces = 0, steps = 0;
  for (const Instruction& i : p.instructions[1]) {
    reduces += i.op == OpCode::kReduce && i.arg == 1;
    steps += i.op == OpCode::kStep;
  }
  EXPECT_EQ(reduces, 1);
  EXPECT_EQ(steps, 2);
}

TEST(Lower, DropsATieOfOneCopy) {
  LoweringOptions options;
  options.ties = {{"embedding", {0, 0}}};
  PIPELAB_ASSERT_OK_AND_ASSIGN(Program p, Lower(ChainOf(1, {"0F0 0B0"}), options));
  EXPECT_TRUE(p.reductions.empty());
}

TEST(Lower, KeepsStepsOfAsynchronousSchedulesInPlace) {
  const Schedule s = ChainOf(2, {"0F0 0B0 0S@1 0F1@1 0B1@1 0S@2"});
  PIPELAB_ASSERT_OK_AND_ASSIGN(Program p, Lower(s, {}));
  EXPECT_THAT(Words(p, 0), ElementsAre("compute 0F0", "compute 0B0", "step 0S@1", "compute 0F1@1",
                                       "compute 0B1@1", "step 0S@2"));
  Schedule copies = s;
  copies.placement.groups = {{{0, 1}}};
  copies.placement.num_devices = 2;
  copies.order.push_back(copies.order[0]);
  // The members of a group sum what each step uses.
  PIPELAB_ASSERT_OK_AND_ASSIGN(p, Lower(copies, {}));
  EXPECT_EQ(CheckProgram(p), "");
  EXPECT_THAT(Words(p, 1), ElementsAre("compute 0F0", "compute 0B0", "reduce 0S", "reduce_wait 0S",
                                       "step 0S@1", "compute 0F1@1", "compute 0B1@1", "reduce 0S",
                                       "reduce_wait 0S", "step 0S@2"));
  Schedule replicas = copies;
  replicas.placement.groups = {{{0}}, {{1}}};
  replicas.placement.replica_of_micro_batch = {0, 1};
  replicas.order = {Actions("0F0 0B0 0S@1"), Actions("0F1 0B1 0S@1")};
  EXPECT_THAT(Lower(replicas, {}), StatusIs(absl::StatusCode::kInvalidArgument,
                                            HasSubstr("2 replicas and its own steps")));
}

// Within sets, then between the devices that have the same part.
TEST(Lower, ShardsInSets) {
  Schedule s = ChainOf(1, {"0F0 0B0"});
  s.placement.groups = {{{0, 1, 2, 3}}};
  s.placement.num_devices = 4;
  s.order.resize(4, s.order[0]);
  LoweringOptions options;
  options.sharding = Sharding::kFully;
  options.shards = 2;
  options.norm_values = 1;
  PIPELAB_ASSERT_OK_AND_ASSIGN(const Program p, Lower(s, options));
  EXPECT_EQ(CheckProgram(p), "");
  EXPECT_THAT(Words(p, 2), ElementsAre("gather 0S", "gather_wait 0S", "compute 0F0", "compute 0B0",
                                       "release 0S", "reduce 0S", "reduce_wait 0S", "reduce 0S",
                                       "reduce_wait 0S", "norm 0S", "norm_wait 0S", "step 0S"));
  const auto devices = [](const std::vector<StageCopy>& members) {
    return std::make_pair(members.at(0).device, members.at(1).device);
  };
  ASSERT_EQ(p.gathers.size(), 2u);
  EXPECT_EQ(devices(p.gathers[1].members), std::make_pair(2, 3));
  ASSERT_EQ(p.reductions.size(), 4u);
  for (const auto& [i, of] :
       {std::make_pair(0, std::make_pair(0, 1)), {1, {2, 3}}, {2, {0, 2}}, {3, {1, 3}}}) {
    EXPECT_EQ(p.reductions[i].scatter, i < 2);
    EXPECT_EQ(devices(p.reductions[i].members), of);
  }
  for (int d = 0; d < 4; ++d) {
    EXPECT_EQ(ShardOf(p, {d, 0, 0}).index, d % 2);
    EXPECT_EQ(NormShareOf(p, {d, 0, 0}).own, d < 2);
  }
  Program apart = p;  // the sets go their own ways
  apart.reductions.resize(2);
  for (std::vector<Instruction>& list : apart.instructions) {
    list.erase(std::remove_if(list.begin(), list.end(),
                              [](const Instruction& i) {
                                const bool sum =
                                    i.op == OpCode::kReduce || i.op == OpCode::kReduceWait;
                                return sum && i.arg >= 2;
                              }),
               list.end());
  }
  EXPECT_THAT(CheckProgram(apart), HasSubstr("copies of stage 0 are not summed"));
}

// After every sum and before every step, by all devices.
TEST(Lower, SumsSquaresBetweenReductionsAndSteps) {
  LoweringOptions options;
  options.norm_values = 5;
  options.ties = {{"embedding", {0, 1}}};
  PIPELAB_ASSERT_OK_AND_ASSIGN(Program p, Lower(ChainOf(1, {"0F0 0B0", "1F0 1B0"}), options));
  EXPECT_EQ(CheckProgram(p), "");
  EXPECT_THAT(Words(p, 0),
              ElementsAre("compute 0F0", "send 0F0 to 1", "receive 1B0", "wait 1B0", "compute 0B0",
                          "reduce 0S", "reduce_wait 0S", "norm 0S", "norm_wait 0S", "step 0S"));
  ASSERT_TRUE(p.norm.has_value());
  EXPECT_EQ(p.norm->values, 5);
  EXPECT_EQ(p.norm->members.size(), 2u);
  EXPECT_TRUE(NormShareOf(p, {0, 0, 0}).own);
  EXPECT_THAT(NormShareOf(p, {0, 0, 0}).ties, ElementsAre("embedding"));
  EXPECT_TRUE(NormShareOf(p, {1, 0, 1}).own);
  EXPECT_THAT(NormShareOf(p, {1, 0, 1}).ties, ElementsAre());
  options.step = false;
  options.ties.clear();
  PIPELAB_ASSERT_OK_AND_ASSIGN(p, Lower(ChainOf(1, {"0F0 0B0"}), options));
  EXPECT_FALSE(p.norm.has_value());
}

TEST(Lower, RefusesANormOfStepsOnTheirOwn) {
  LoweringOptions options;
  options.norm_values = 5;
  EXPECT_THAT(Lower(ChainOf(2, {"0F0 0B0 0S@1 0F1@1 0B1@1 0S@2"}), options),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("--clip_norm: the global norm needs all gradients")));
  options.norm_values = -1;
  EXPECT_THAT(Lower(ChainOf(1, {"0F0 0B0"}), options),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("-1 parameter values")));
}

TEST(Lower, RefusesWhatIsNotValid) {
  EXPECT_THAT(Lower(ChainOf(1, {"0F0"}), {}),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("device 0, position 1: 0B0 is missing")));
  EXPECT_THAT(Lower(ChainOf(2, {"0F0 0B0 0F1 0B1", "1F0 1F1 1B0 1B1"}), {}),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("deadlock: device 0")));
  LoweringOptions options;
  options.ties = {{"embedding", {4}}};
  EXPECT_THAT(Lower(ChainOf(1, {"0F0 0B0"}), options),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("tied to stage 4")));
}

TEST(Lower, WithoutStepsEndsWithTheLastCompute) {
  LoweringOptions options;
  options.step = false;
  PIPELAB_ASSERT_OK_AND_ASSIGN(Program p, Lower(ChainOf(1, {"0F0 0B0"}), options));
  EXPECT_THAT(Words(p, 0), ElementsAre("compute 0F0", "compute 0B0"));
}

// The checker must be able to fail.
TEST(ProgramChecker, FindsFaults) {
  PIPELAB_ASSERT_OK_AND_ASSIGN(const Program good,
                               Lower(ChainOf(2, {"0F0 0F1 0B0 0B1", "1F0 1B0 1F1 1B1"}), {}));
  ASSERT_EQ(CheckProgram(good), "");
  Program p = good;
  std::swap(p.instructions[0][3], p.instructions[0][4]);  // waits for 1B0 before it sends 0F1
  EXPECT_THAT(CheckProgram(p), HasSubstr("device 0 is stuck at 3: receive 1B0"));
  p = good;  // receives of a pair in another order than its sends
  std::swap(p.instructions[1][0].arg, p.instructions[1][3].arg);
  EXPECT_THAT(CheckProgram(p), HasSubstr("order"));
  p = good;
  p.instructions[1].erase(p.instructions[1].begin() + 1);  // no wait for 0F0
  EXPECT_THAT(CheckProgram(p), HasSubstr("1F0"));
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
  using List = std::vector<Instruction>;
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
  EXPECT_THAT(CheckProgram(p), HasSubstr("norm 0 begins 1 times"));
  options.ties.clear();
  PIPELAB_ASSERT_OK_AND_ASSIGN(p, Lower(ChainOf(1, {"0F0 0B0"}), options));
  std::swap(p.instructions[0][1], p.instructions[0][2]);
  EXPECT_THAT(CheckProgram(p), HasSubstr("0B0 adds to gradients whose norm is taken already"));
}

}  // namespace
}  // namespace pipelab
