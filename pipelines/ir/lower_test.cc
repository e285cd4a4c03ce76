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
#include "pipelines/ir/text.h"
#include "tests/support/program_checker.h"
#include "tests/support/test_schedules.h"
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
  for (const Schedule& s : OtherSchedules()) {
    PIPELAB_ASSERT_OK_AND_ASSIGN(const Program p, Lower(s, {}));
    EXPECT_EQ(CheckProgram(p), "") << ToText(s);
  }
}

// "r/s [begin, end]" of each run: of a replica's stage.
std::string RunsOf(const std::vector<StageRun>& runs) {
  std::string text;
  for (const StageRun& r : runs) {
    text += std::to_string(r.replica) + "/" + std::to_string(r.stage) + " [" +
            std::to_string(r.begin) + "," + std::to_string(r.end) + "] ";
  }
  return text;
}

// A device of two stages: by runs of a pass, those that touch being one, or by micro-batch.
TEST(Sharding, RunsOfStages) {
  Schedule s = ChainOf(2, {"0F0 0F1 1F0 1F1 1R0 1B0 1R1 1B1 0R0 0B0 0R1 0B1"});
  s.stages = StageGraph::Chain(2);
  s.placement = Placement::Single({0, 0}, 1, 2);
  EXPECT_EQ(RunsOf(WeightRuns(s, 0, Residency::kRun)), "0/0 [0,1] 0/1 [2,7] 0/0 [8,11] ");
  EXPECT_EQ(RunsOf(GradientRuns(s, 0, Residency::kRun)), "0/1 [5,7] 0/0 [9,11] ");
  EXPECT_EQ(RunsOf(WeightRuns(s, 0, Residency::kMicroBatch)),
            "0/0 [0,0] 0/0 [1,1] 0/1 [2,2] 0/1 [3,3] 0/1 [4,5] 0/1 [6,7] 0/0 [8,9] 0/0 [10,11] ");
  EXPECT_EQ(RunsOf(GradientRuns(s, 0, Residency::kMicroBatch)),
            "0/1 [5,5] 0/1 [7,7] 0/0 [9,9] 0/0 [11,11] ");
  // Copies to the host and steps are of no run.
  EXPECT_EQ(RunsOf(WeightRuns(ChainOf(1, {"0F0 0O0 0L0 0B0 0S@1"}), 0, Residency::kRun)),
            "0/0 [0,0] 0/0 [3,3] ");
  // The second run of stage 0 would be gathered where stage 1's begins, and it is still there; the
  // third where that of stage 2 begins, when it is gone.
  EXPECT_EQ(RunsOf(JoinForPrefetch({{0, 0, 0, 3}, {0, 1, 2, 4}, {0, 0, 5, 6}})),
            "0/0 [0,6] 0/1 [2,4] ");
  EXPECT_EQ(RunsOf(JoinForPrefetch({{0, 0, 0, 2}, {0, 1, 3, 4}, {0, 0, 5, 6}})),
            "0/0 [0,2] 0/1 [3,4] 0/0 [5,6] ");
}

// Sums stay, and afterwards no device has two chunks more than another.
TEST(SliceExchange, SpreadsChunksEvenly) {
  EXPECT_THAT(SpreadChunks({3, 0}), ElementsAre(ElementsAre(0, 1), ElementsAre(0, 0)));
  EXPECT_THAT(SpreadChunks({0, 2}), ElementsAre(ElementsAre(0, 0), ElementsAre(1, 0)));
  EXPECT_THAT(SpreadChunks({1, 0}), ElementsAre(ElementsAre(0, 0), ElementsAre(0, 0)));
  EXPECT_THAT(SpreadChunks({6, 0, 0}),
              ElementsAre(ElementsAre(0, 2, 2), ElementsAre(0, 0, 0), ElementsAre(0, 0, 0)));
}

// Device 0 is a pass ahead forwards, and device 1 backwards. So one has the first slice of a
// micro-batch while the other has the last of the one before, with two chunks more: one moves.
TEST(SliceExchange, MovesChunksBetweenMicroBatches) {
  Schedule s = ChainOf(2, {"0F0 0F0.1 0F0.2 0F1 0B0.2 0F1.1 0B0.1 0F1.2 0B0 0B1.2 0B1.1 0B1",
                           "1F0 1F0.1 1F0.2 1B0.2 1F1 1B0.1 1F1.1 1B0 1F1.2 1B1.2 1B1.1 1B1"});
  s.num_slices = 3;
  PIPELAB_ASSERT_OK_AND_ASSIGN(const SliceExchangePlan plan, PlanSliceExchange(s));
  EXPECT_EQ(plan.every, 1);
  std::vector<std::string> passes;
  for (const PassExchange& p : plan.passes) {
    std::string& text = passes.emplace_back(ToString(p.action));
    text += " in slot " + std::to_string(p.slot);
    for (const ChunkShare& share : p.given) text += " to " + std::to_string(share.device);
    for (const ChunkShare& share : p.received) text += " from " + std::to_string(share.device);
    for (const auto* shares : {&p.given, &p.received}) {
      for (const ChunkShare& share : *shares) {
        EXPECT_EQ(share.first, 0);
        EXPECT_EQ(share.count, 1);
      }
    }
    EXPECT_EQ(p.Chunks(), 1);
  }
  // Forwards have slots 0 to 6, backwards 7 to 13.
  EXPECT_THAT(passes, ElementsAre("0F1 in slot 3 from 1", "1F0.2 in slot 3 to 0",
                                  "0B0 in slot 10 from 1", "1B1.2 in slot 10 to 0"));
  EXPECT_THAT(plan.of_action[0], ElementsAre(-1, -1, -1, 0, -1, -1, -1, -1, 2, -1, -1, -1));
  EXPECT_THAT(plan.of_action[1], ElementsAre(-1, -1, 1, -1, -1, -1, -1, -1, -1, 3, -1, -1));
  LoweringOptions options;
  options.slice_exchange = true;
  PIPELAB_ASSERT_OK_AND_ASSIGN(const Program p, Lower(s, options));
  EXPECT_EQ(CheckProgram(p), "");
  for (int d = 0; d < 2; ++d) {
    std::vector<int32_t> args;
    for (const Instruction& i : p.instructions[d]) {
      if (i.op == OpCode::kCompute) args.push_back(i.arg);
    }
    EXPECT_EQ(args, plan.of_action[d]);
  }
}

TEST(SliceExchange, RefusesWhatCannotExchange) {
  const auto error = [](const Schedule& s) {
    return std::string(PlanSliceExchange(s).status().message());
  };
  Schedule s = ChainOf(1, {"0F0 0F0.1 0B0.1 0B0", "1F0 1F0.1 1B0.1 1B0"});
  EXPECT_THAT(error(s), HasSubstr("has no token slices"));
  s.num_slices = 2;
  EXPECT_THAT(error(s), HasSubstr("no two of them have unequal passes"));
  const std::string training = "training of one replica with micro-batches of one size";
  Schedule other = s;
  other.placement.groups.push_back({{1}, {0}});
  EXPECT_THAT(error(other), HasSubstr(training));
  other = s;
  other.micro_batches_of_stage = {1, 1};
  EXPECT_THAT(error(other), HasSubstr(training));
  other = s;
  other.forward_only = true;
  EXPECT_THAT(error(other), HasSubstr(training));
  other = s;
  other.stages = StageGraph::Chain(4);
  other.placement.groups = {{{0}, {1}, {1}, {0}}};
  EXPECT_THAT(error(other), HasSubstr("its stages are not in turn on the devices"));
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

std::vector<Reads> GradientsOver(Schedule schedule, std::vector<StageGraph::Edge> scheduled,
                                 std::vector<StageGraph::Edge> edges) {
  const int stages = schedule.num_stages();
  schedule.stages = StageGraph::FromEdges(stages, std::move(scheduled));
  const absl::StatusOr<Schedule> made =
      WithStages(std::move(schedule), StageGraph::FromEdges(stages, std::move(edges)));
  std::vector<Reads> gradients;
  for (const StageGraph::Edge& e : made.value().stages.edges) gradients.push_back(e.gradient);
  return gradients;
}

// A chain's gradients are as late as its edges between the ends are together; a graph's edges are
// those of the schedule, in any order.
TEST(WithStages, GradientsAreAsLateAsTheSchedules) {
  constexpr Reads kNone = Reads::None();
  const Schedule chain = ChainOf(1, {"0F0 0B0", "1F0 1B0", "2F0 2B0", "3F0 3B0"});
  EXPECT_THAT(
      GradientsOver(chain, {{0, 1, Reads::Late(1)}, {1, 2, Reads::Late(2)}, {2, 3, Reads::Late(4)}},
                    {{0, 1}, {0, 2}, {1, 2}, {1, 3}, {0, 3}, {2, 3, kNone}}),
      ElementsAre(Reads::Late(1), Reads::Late(3), Reads::Late(2), Reads::Late(6), Reads::Late(7),
                  kNone));
  EXPECT_THAT(GradientsOver(chain, {{0, 1, Reads::Late(1)}, {1, 2, kNone}, {2, 3}},
                            {{0, 1}, {0, 2}, {1, 2}, {1, 3}, {2, 3}}),
              ElementsAre(Reads::Late(1), kNone, kNone, kNone, Reads::Late(0)));
  // Each edge has an end in common with others.
  EXPECT_THAT(
      GradientsOver(chain,
                    {{0, 1, Reads::Late(1)},
                     {0, 2, Reads::Late(2)},
                     {0, 3, Reads::Late(3)},
                     {1, 3, Reads::Late(4)},
                     {2, 3, Reads::Late(5)}},
                    {{2, 3}, {1, 3}, {0, 3}, {0, 2}, {0, 1}}),
      ElementsAre(Reads::Late(5), Reads::Late(4), Reads::Late(3), Reads::Late(2), Reads::Late(1)));
}

TEST(Lower, LocalEdgesMakeNoMessage) {
  Schedule s = ChainOf(1, {"0F0 1F0 1B0 0B0", ""});
  s.placement.groups[0][1] = {0};
  PIPELAB_ASSERT_OK_AND_ASSIGN(Program p, Lower(s, {}));
  EXPECT_TRUE(p.messages.empty());
  EXPECT_THAT(Words(p, 0), ElementsAre("compute 0F0", "compute 1F0", "compute 1B0", "compute 0B0",
                                       "step 0S", "step 1S"));
}

// A device's messages with its neighbour go together where a forward and a backward take turns; or
// each on its own, and then every other device receives first.
TEST(Lower, GroupsMessagesInCalls) {
  const Schedule s = ChainOf(2, {"0F0 0F1 0B0 0B1", "1F0 1B0 1F1 1B1"});
  LoweringOptions options;
  options.calls = MessageCalls::kOneNeighbour;
  PIPELAB_ASSERT_OK_AND_ASSIGN(Program p, Lower(s, options));
  EXPECT_EQ(CheckProgram(p), "");
  EXPECT_THAT(Words(p, 0), ElementsAre("compute 0F0", "send 0F0 to 1", "synchronise 0F0",
                                       "compute 0F1", "receive 1B0", "send 0F1 to 1", "wait 1B0",
                                       "synchronise 0F1", "compute 0B0", "receive 1B1", "wait 1B1",
                                       "synchronise 0B0", "compute 0B1", "step 0S"));
  EXPECT_THAT(Words(p, 1), ElementsAre("receive 0F0", "wait 0F0", "synchronise 1F0", "compute 1F0",
                                       "compute 1B0", "receive 0F1", "send 1B0 to 0", "wait 0F1",
                                       "synchronise 1B0", "compute 1F1", "compute 1B1",
                                       "send 1B1 to 0", "synchronise 1B1", "step 1S"));
  options.calls = MessageCalls::kOneMessage;
  PIPELAB_ASSERT_OK_AND_ASSIGN(p, Lower(s, options));
  EXPECT_EQ(CheckProgram(p), "");
  EXPECT_THAT(
      Words(p, 0),
      ElementsAre("compute 0F0", "send 0F0 to 1", "synchronise 0F0", "compute 0F1", "send 0F1 to 1",
                  "synchronise 0F1", "receive 1B0", "wait 1B0", "synchronise 0F1", "compute 0B0",
                  "receive 1B1", "wait 1B1", "synchronise 0B0", "compute 0B1", "step 0S"));
  EXPECT_THAT(
      Words(p, 1),
      ElementsAre("receive 0F0", "wait 0F0", "synchronise 1F0", "compute 1F0", "compute 1B0",
                  "receive 0F1", "wait 0F1", "synchronise 1B0", "send 1B0 to 0", "synchronise 1B0",
                  "compute 1F1", "compute 1B1", "send 1B1 to 0", "synchronise 1B1", "step 1S"));
}

// Two stages a device: 2b + P forwards before the first backward, b devices being behind. Each of
// them, each backward at the end and each pair in between ends with a call, and all but the first
// device begin with one.
TEST(Lower, GroupsMessagesOfTwoNeighbours) {
  constexpr int kDevices = 3, kPasses = 6;
  std::vector<std::string> lines;
  std::vector<int> calls;
  for (int d = 0; d < kDevices; ++d) {
    const auto pass = [&](char kind, int i) {
      const int chunk = (i / kDevices == 0) == (kind == 'F') ? 0 : 1;
      return std::to_string(chunk * kDevices + d) + kind + std::to_string(i % kDevices) + " ";
    };
    const int warm_up = std::min(2 * (kDevices - 1 - d) + kDevices, kPasses);
    std::string& line = lines.emplace_back();
    for (int i = 0; i < kPasses; ++i) {
      line += pass('F', i);
      if (i >= warm_up) line += pass('B', i - warm_up);
    }
    for (int i = kPasses - warm_up; i < kPasses; ++i) line += pass('B', i);
    calls.push_back((d > 0 ? 1 : 0) + kPasses + warm_up);
  }
  Schedule s = ChainOf(kDevices, lines);
  s.stages = StageGraph::Chain(2 * kDevices);
  s.placement = Placement::Single({0, 1, 2, 0, 1, 2}, kDevices, kDevices);
  LoweringOptions options;
  options.calls = MessageCalls::kBothNeighbours;
  PIPELAB_ASSERT_OK_AND_ASSIGN(const Program p, Lower(s, options));
  EXPECT_EQ(CheckProgram(p), "");
  for (int d = 0; d < kDevices; ++d) {
    EXPECT_EQ(std::count_if(p.instructions[d].begin(), p.instructions[d].end(),
                            [](const Instruction& i) { return i.op == OpCode::kSynchronise; }),
              calls[d]);
  }
}

TEST(Lower, RefusesCallsOfOtherOrders) {
  LoweringOptions options;
  options.calls = MessageCalls::kOneNeighbour;
  const auto error = [&](const Schedule& s) {
    return std::string(Lower(s, options).status().message());
  };
  const Schedule good = ChainOf(2, {"0F0 0F1 0B0 0B1", "1F0 1B0 1F1 1B1"});
  EXPECT_EQ(error(good), "");
  EXPECT_THAT(error(ChainOf(2, {"0F0 0F1 0B0 0B1", "1F0 1F1 1B0 1B1"})),
              HasSubstr("device 1 does not run 0 forwards and then"));
  EXPECT_THAT(error(ChainOf(1, {"0F0 0I0 0W0", "1F0 1B0"})),
              HasSubstr("passes are F and B, not 0I0"));
  Schedule s = good;
  s.stages = StageGraph::FromEdges(2, {{0, 1, Reads::Late(1)}});
  EXPECT_THAT(error(s), HasSubstr("some here are late or none"));
  s = ChainOf(1, {"0F0 0B0", "1F0 1B0", "2F0 2B0"});
  s.stages = StageGraph::FromEdges(3, {{0, 1}, {0, 2}, {1, 2}});
  EXPECT_THAT(error(s), HasSubstr("an edge from stage 0 to stage 2"));
  s = ChainOf(2, {"0F0 0F1", "1F0 1F1"});
  s.forward_only = true;
  EXPECT_THAT(error(s), HasSubstr("here are forwards alone"));
  s = ChainOf(1, {"0F0 1F0 1B0 0B0"});
  s.stages = StageGraph::Chain(2);
  s.placement = Placement::Single({0, 0}, 1, 1);
  EXPECT_THAT(error(s), HasSubstr("1F1B has one stage per device, not 2"));
  s = ChainOf(1, {"0F0 3F0 3B0 0B0", "1F0 2F0 2B0 1B0"});
  s.stages = StageGraph::Chain(4);
  s.placement = Placement::Single({0, 1, 1, 0}, 2, 1);
  EXPECT_THAT(error(s), HasSubstr("stage 2 is not on device 0 of the pipeline"));
  options.calls = MessageCalls::kBothNeighbours;
  EXPECT_THAT(error(good), HasSubstr("needs P of at least 3, not 2"));
  EXPECT_THAT(error(ChainOf(1, {"0F0 0B0", "1F0 1B0", "2F0 2B0"})),
              HasSubstr("M=1 must be a multiple of P=3"));
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

// Two directions over two devices: a stage's sum begins once the backwards of both are over, or at
// the end.
TEST(Lower, SumsEagerlyOnlyWhatIsComplete) {
  Schedule s = ChainOf(2, {"0F0 1F1 1B1 0B0", "0F1 1F0 1B0 0B1"});
  s.placement.groups = {{{0}, {1}}, {{1}, {0}}};
  s.placement.replica_of_micro_batch = {0, 1};
  LoweringOptions options;
  for (const bool eager : {false, true}) {
    options.eager_reductions = eager;
    PIPELAB_ASSERT_OK_AND_ASSIGN(const Program p, Lower(s, options));
    EXPECT_EQ(CheckProgram(p), "");
    for (const auto& list : p.instructions) {
      const auto first = std::find_if(list.begin(), list.end(),
                                      [](const Instruction& i) { return i.op == OpCode::kReduce; });
      EXPECT_EQ(std::count_if(first, list.end(),
                              [](const Instruction& i) { return i.op == OpCode::kCompute; }),
                eager ? 1 : 0);
    }
  }
}

// A tie's sum stands before the backwards of stages that have no part in it.
TEST(Lower, SumsTiesBeforeOtherStagesBackwards) {
  Schedule s = ChainOf(1, {"0F0 1F0 1B0 0B0", "2F0 2B0"});
  s.stages = StageGraph::Chain(3);
  s.placement.groups = {{{0}, {0}, {1}}};
  LoweringOptions options;
  options.eager_reductions = true;
  options.ties = {{"embedding", {1, 2}}};
  PIPELAB_ASSERT_OK_AND_ASSIGN(const Program p, Lower(s, options));
  EXPECT_EQ(CheckProgram(p), "");
  EXPECT_THAT(Words(p, 0), ElementsAre("compute 0F0", "compute 1F0", "send 1F0 to 1", "receive 2B0",
                                       "wait 2B0", "compute 1B0", "reduce 1S", "compute 0B0",
                                       "reduce_wait 1S", "step 0S", "step 1S"));
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
  LoweringOptions options;
  options.sharding = Sharding::kFully;
  options.shards = 2;
  options.norm_values = 1;
  PIPELAB_ASSERT_OK_AND_ASSIGN(const Program p, Lower(OneStageOnFour(), options));
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
  for (const int stage : {-1, 1, 4}) {
    options.ties = {{"embedding", {stage}}};
    EXPECT_THAT(Lower(ChainOf(1, {"0F0 0B0"}), options),
                StatusIs(absl::StatusCode::kInvalidArgument,
                         HasSubstr("tied to stage " + std::to_string(stage))));
  }
  for (const Tie& tie : {Tie{"", {0}}, Tie{"embedding", {}}}) {
    options.ties = {tie};
    EXPECT_THAT(Lower(ChainOf(1, {"0F0 0B0"}), options),
                StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("a tie needs")));
  }
}

TEST(Lower, WithoutStepsEndsWithTheLastCompute) {
  LoweringOptions options;
  options.step = false;
  PIPELAB_ASSERT_OK_AND_ASSIGN(Program p, Lower(ChainOf(1, {"0F0 0B0"}), options));
  EXPECT_THAT(Words(p, 0), ElementsAre("compute 0F0", "compute 0B0"));
}

}  // namespace
}  // namespace pipelab
