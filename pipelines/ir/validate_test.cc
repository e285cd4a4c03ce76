// The validator's verdicts, word for word: they are what a user with a broken schedule sees.
#include "pipelines/ir/validate.h"

#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/support/brute_force.h"
#include "tests/support/test_schedules.h"
#include "tools/base/rng.h"
#include "tools/base/status_matchers.h"

namespace pipelab {
namespace {

using testing::HasSubstr;

std::string Verdict(const Schedule& s) { return std::string(Validate(s).message()); }

Schedule Good() { return ChainOf(2, {"0F0 0F1 0B0 0B1", "1F0 1B0 1F1 1B1"}); }

TEST(Validate, AcceptsWhatIsRight) {
  EXPECT_THAT(Validate(Good()), IsOk());
  EXPECT_THAT(Validate(ChainOf(1, {"0F0 0I0 0W0", "1F0 1B0"})), IsOk());
  EXPECT_THAT(Validate(ChainOf(1, {"0F0 0R0 0B0", "1F0 1B0"})), IsOk());
  EXPECT_THAT(Validate(ChainOf(2, {"0F0 0B0 0S@1 0F1@1 0B1@1 0S@2"})), IsOk());
  uint64_t seed = 0;
  for (const RandomShape& shape : Shapes()) {
    for (int i = 0; i < 5; ++i) EXPECT_THAT(Validate(RandomOrder(shape, ++seed)), IsOk());
  }
}

TEST(Validate, NamesTheActionOutOfOrder) {
  EXPECT_EQ(Verdict(ChainOf(2, {"0F0 0F1 0B0 0B1", "1F0 1B0 1B1 1F1"})),
            "device 1, position 2: 1B1 comes before its forward 1F1 (position 3)");
  EXPECT_EQ(Verdict(ChainOf(1, {"0F0 0W0 0I0"})),
            "device 0, position 1: 0W0 comes before its input part 0I0 (position 2)");
  EXPECT_EQ(Verdict(ChainOf(1, {"0F0 0B0 0R0"})),
            "device 0, position 1: 0B0 comes before its recompute 0R0 (position 2)");
  Schedule local = ChainOf(1, {"1F0 0F0 1B0 0B0", ""});
  local.placement.groups[0][1] = {0};
  EXPECT_EQ(Verdict(local),
            "device 0, position 0: 1F0 comes before 0F0, which it needs (position 1)");
}

TEST(Validate, NamesWhatIsMissingOrTooMuch) {
  EXPECT_EQ(Verdict(ChainOf(2, {"0F0 0F1 0B0 0B1", "1F0 1B0 1F1"})),
            "device 1, position 3: 1B1 is missing (or its parts I and W); the list ends here");
  EXPECT_EQ(Verdict(ChainOf(2, {"0F0 0F1 0B0 0B1", "1F0 1B0 1B1"})),
            "device 1, position 2: 1F1 is missing; 1B1 here needs it");
  EXPECT_EQ(Verdict(ChainOf(2, {"0F0 0F1 0B0 0B1", "1F0 1B0"})),
            "device 1, position 2: 1F1 is missing; the list ends here");
  EXPECT_EQ(Verdict(ChainOf(1, {"0F0 0I0"})),
            "device 0, position 2: 0W0 is missing: the weight part of 0I0; the list ends here");
  EXPECT_EQ(Verdict(ChainOf(1, {"0F0 0W0"})),
            "device 0, position 1: 0I0 is missing: the input part of 0W0; 0W0 here needs it");
  EXPECT_EQ(Verdict(ChainOf(1, {"0F0 0B0 0I0"})),
            "device 0, position 2: 0I0 repeats a part of 0B0 (position 1)");
  EXPECT_EQ(
      Verdict(ChainOf(2, {"0F0 0R0 0B0 0F1 0B1"})),
      "device 0, position 4: 0R1 is missing: a stage recomputes all micro-batches or none; 0B1 "
      "here needs it");
  EXPECT_EQ(Verdict(ChainOf(1, {"0R0 0B0"})),
            "device 0, position 0: 0F0 is missing; 0R0 here needs it");
  EXPECT_EQ(Verdict(ChainOf(1, {"0F0 0F0 0B0"})),
            "device 0, position 1: 0F0 comes a second time (first at position 0)");
}

TEST(Validate, OffloadsAreInTheirPlace) {
  EXPECT_EQ(Verdict(ChainOf(1, {"0F0 0O0 0L0 0B0"})), "");
  EXPECT_EQ(Verdict(ChainOf(1, {"0F0 0O0 0L0 0I0 0W0"})), "");
  EXPECT_EQ(Verdict(ChainOf(1, {"0O0 0F0 0L0 0B0"})),
            "device 0, position 0: 0O0 comes before its forward 0F0");
  EXPECT_EQ(Verdict(ChainOf(1, {"0F0 0L0 0O0 0B0"})),
            "device 0, position 1: 0L0 comes before its offload 0O0");
  EXPECT_EQ(Verdict(ChainOf(1, {"0F0 0O0 0B0 0L0"})),
            "device 0, position 2: 0B0 comes before its reload 0L0");
  EXPECT_EQ(Verdict(ChainOf(1, {"0F0 0I0 0O0 0L0 0W0"})),
            "device 0, position 2: 0O0 comes after 0I0, which has taken what it would move");
  EXPECT_EQ(Verdict(ChainOf(1, {"0F0 0O0 0L0 0O0 0B0"})),
            "device 0, position 3: 0O0 comes a second time (first at position 1)");
  EXPECT_EQ(Verdict(ChainOf(1, {"0F0 0O0 0L0 0R0 0B0"})),
            "device 0, position 1: 0O0: stage 0 recomputes; it does one or the other");
  Schedule group = ChainOf(1, {"0F0 0O0 0L0 0B0", "0F0 0B0"});
  group.stages = StageGraph::Chain(1);
  group.placement.groups = {{{0, 1}}};
  EXPECT_EQ(Verdict(group),
            "device 0, position 1: 0O0: devices 0+1 share stage 0 and must all offload its "
            "micro-batch 0, or none");
}

TEST(Validate, NamesWhatIsOutOfRangeOrMisplaced) {
  EXPECT_EQ(Verdict(ChainOf(1, {"0F0 0B0 1F0", "1F0 1B0"})),
            "device 0, position 2: 1F0 is placed on device 1 (replica 0)");
  EXPECT_EQ(Verdict(ChainOf(1, {"0F0 7F0 0B0"})),
            "device 0, position 1: 7F0: stage 7 does not exist; there are 1 stages");
  EXPECT_EQ(Verdict(ChainOf(1, {"0F0 0F1 0B0"})),
            "device 0, position 1: 0F1: micro-batch 1 does not exist; there are 1");
  EXPECT_EQ(Verdict(ChainOf(1, {"0F0.1 0B0"})),
            "device 0, position 0: 0F0.1: slice 1 does not exist; there are 1");
  Schedule s = Good();
  s.placement.groups[0][1] = {9};
  EXPECT_EQ(Verdict(s), "replica 0, stage 1: device 9 does not exist; there are 2 devices");
  s.placement.groups[0][1] = {};
  EXPECT_EQ(Verdict(s), "replica 0, stage 1: it has no device");
  s.placement.groups[0][1] = {1, 1};
  EXPECT_EQ(Verdict(s), "replica 0, stage 1: device 1 is in its group twice");
  s = Good();
  s.placement.replica_of_micro_batch[1] = 3;
  EXPECT_EQ(Verdict(s), "micro-batch 1: replica 3 does not exist; there are 1");
  s = Good();
  s.stages = StageGraph::FromEdges(2, {{0, 1}, {1, 0}});
  EXPECT_EQ(Verdict(s), "the stage graph has a cycle, at or before stage 0");
  s.stages = StageGraph::FromEdges(2, {{0, 1}, {1, 0, Reads::Late(1)}});
  EXPECT_EQ(
      Verdict(s),
      "the stage graph has a cycle, at or before stage 0; a late gradient breaks none: outputs "
      "are never late");
  s = Good();
  std::swap(s.stages.in_edges[0], s.stages.in_edges[1]);
  EXPECT_THAT(Verdict(s), HasSubstr("do not fit its edges"));
}

TEST(Validate, RefusesShapesBeyondTheirBounds) {
  constexpr int kMost = 32767;  // of an int16_t
  Schedule s = Good();
  s.stages = StageGraph::FromEdges(0, {});
  EXPECT_EQ(Verdict(s), "a schedule has 1 to 32767 stages, not 0");
  s.stages = StageGraph::FromEdges(kMost + 1, {});
  EXPECT_EQ(Verdict(s), "a schedule has 1 to 32767 stages, not 32768");
  s.stages = StageGraph::FromEdges(kMost, {});
  EXPECT_EQ(Verdict(s), "replica 0 places 2 stages of 32767");
  for (const auto& [from, to] : {std::make_pair(-1, 1), {2, 1}, {0, -1}, {0, 2}}) {
    s = Good();
    s.stages.edges = {{from, to}};
    EXPECT_EQ(Verdict(s), absl::StrCat("edge ", from, "-", to, " leaves the 2 stages"));
  }
  for (const int devices : {0, kMost + 1}) {
    s = Good();
    s.placement.num_devices = devices;
    EXPECT_EQ(Verdict(s), absl::StrCat("a schedule has 1 to 32767 devices, not ", devices));
  }
  s.placement.num_devices = kMost;
  EXPECT_EQ(Verdict(s), "the order has 2 device lists for 32767 devices");
  for (const int replicas : {0, 257}) {
    s = Good();
    s.placement.groups.resize(replicas);
    EXPECT_EQ(Verdict(s), absl::StrCat("a schedule has 1 to 256 replicas, not ", replicas));
  }
  s.placement.groups.assign(256, {{0}, {1}});
  EXPECT_EQ(Verdict(s), "");
  s = Good();
  s.placement.groups[0][0] = {-1};
  EXPECT_EQ(Verdict(s), "replica 0, stage 0: device -1 does not exist; there are 2 devices");
  s.placement.groups[0][0] = {2};
  EXPECT_EQ(Verdict(s), "replica 0, stage 0: device 2 does not exist; there are 2 devices");
  s = Good();
  s.num_micro_batches = 0;
  EXPECT_EQ(Verdict(s), "a schedule has at least 1 micro-batch, not 0");
  s.num_micro_batches = 3;
  EXPECT_EQ(Verdict(s), "2 micro-batches have a replica, of 3");
  s = Good();
  for (const int replica : {-1, 1}) {
    s.placement.replica_of_micro_batch[1] = replica;
    EXPECT_EQ(Verdict(s),
              absl::StrCat("micro-batch 1: replica ", replica, " does not exist; there are 1"));
  }
  for (const int slices : {0, kMost + 1}) {
    s = Good();
    s.num_slices = slices;
    EXPECT_EQ(Verdict(s), absl::StrCat("a micro-batch has 1 to 32767 slices, not ", slices));
  }
  s.num_slices = kMost;
  EXPECT_THAT(Verdict(s), HasSubstr("and 32767 slices need at least"));
}

// A lag of as many micro-batches as a step has leaves no gradient to take.
TEST(Validate, LateGradientsAreOfOneSize) {
  const auto reads = [](Reads gradient) {
    Schedule s = Good();
    s.stages = StageGraph::FromEdges(2, {{0, 1, gradient}});
    return s;
  };
  const auto late = [&](int lag) { return reads(Reads::Late(lag)); };
  EXPECT_EQ(Verdict(reads(Reads::None())), "");
  EXPECT_EQ(Verdict(reads(Reads::List())), "edge 0-1: its gradient is read as an output may be");
  for (const int lag : {0, 1, 2}) EXPECT_EQ(Verdict(late(lag)), "");
  for (const Reads output : {Reads::None(), Reads::Late(1)}) {
    Schedule s = Good();
    s.stages.edges[0].output = output;
    EXPECT_EQ(Verdict(s),
              "edge 0-1: its output is read as a gradient may be; a forward needs its input");
  }
  for (const int lag : {-2, 3}) {
    EXPECT_EQ(Verdict(late(lag)),
              absl::StrCat("edge 0-1: a gradient that is ", lag,
                           " micro-batches late; it must be 1 to 2, the micro-batches of a step"));
  }
  Schedule s = late(1);
  s.micro_batches_of_stage = {2, 1};
  EXPECT_EQ(Verdict(s),
            "edge 0-1: its stages run 2 and 1 micro-batches; late gradients need equal numbers");
  s = late(1);
  s.placement.groups[0][0] = {0, 1};
  EXPECT_EQ(Verdict(s),
            "edge 0-1: its stages have 2 and 1 devices; late gradients need equal numbers");
  s = late(1);
  s.placement.num_devices = 4;
  s.placement.groups[0] = {{0, 1}, {2, 3}};
  s.order = {s.order[0], s.order[0], s.order[1], s.order[1]};
  EXPECT_EQ(Verdict(s), "");
  s = late(1);
  s.placement.groups.push_back({{1}, {0}});
  EXPECT_EQ(Verdict(s),
            "edge 0-1: late gradients need one replica; devices of another have earlier "
            "micro-batches");
}

// Three passes of a decoding: the second takes what the first made.
Schedule Carried() {
  Schedule s = ChainOf(3, {"0F0 0F1 0F2", "1F0 1F1 1F2"});
  StageGraph::Edge back{1, 0};
  back.output = Reads::List();
  s.stages = StageGraph::FromEdges(2, {{0, 1}, back});
  s.forward_only = true;
  s.carried = {-1, 0, -1};
  return s;
}

TEST(Validate, ChecksWhatIsCarried) {
  EXPECT_EQ(Verdict(Carried()), "");
  for (const char* list : {"0F0 0B0", "0F0 0I0", "0F0 0W0", "0F0 0R0", "0F0 0I0 0W0"}) {
    Schedule more = ChainOf(1, {list});
    more.forward_only = true;
    EXPECT_NE(Verdict(more), "") << list;
    EXPECT_FALSE(BruteForceValid(more)) << list;
  }
  Schedule s = Carried();
  s.stages = StageGraph::Chain(2);
  EXPECT_EQ(Verdict(s), "micro-batches take what is carried, and no edge carries");
  const std::string alone =
      "edge 1-0 carries: it is for forwards alone, of whole micro-batches of one size";
  s = Carried();
  s.forward_only = false;
  EXPECT_EQ(Verdict(s), alone);
  s = Carried();
  s.micro_batches_of_stage = {3, 3};
  EXPECT_EQ(Verdict(s), alone);
  s = Carried();
  s.num_slices = 2;
  EXPECT_EQ(Verdict(s), "a schedule of forwards alone has whole micro-batches, not 2 slices");
  s = Carried();
  s.placement.groups[0][1] = {0, 1};
  EXPECT_EQ(Verdict(s), "edges carry between stages of as many devices");
  s.placement.groups[0][0] = {0, 1};
  EXPECT_EQ(Verdict(s), "edges carry between stages of one device");
  s = Carried();
  s.placement.groups.push_back({{1}, {0}});
  EXPECT_EQ(Verdict(s), "edges carry within one replica");
  s = Carried();
  s.carried = {-1, 0};
  EXPECT_EQ(Verdict(s), "2 micro-batches say what is carried to them, of 3");
  for (const int source : {-2, 1, 2}) {
    s = Carried();
    s.carried.Set(1, source);
    EXPECT_EQ(Verdict(s), absl::StrCat("micro-batch 1 takes what micro-batch ", source,
                                       " made; it must be an earlier one"));
  }
  s = Carried();
  s.carried.Set(2, 0);
  EXPECT_EQ(Verdict(s), "two micro-batches take what 0 made");
  s.carried.Set(2, 1);
  EXPECT_EQ(Verdict(s), "");
}

// Stage 0 prepares what stage 1 trains on, in two workers.
Schedule Prepared() {
  Schedule s = ChainOf(2, {"0F0", "0F1", "1F0 1B0 1F1 1B1"});
  s.stages = StageGraph::FromEdges(2, {{0, 1, Reads::None()}});
  s.placement.groups = {{{0}, {2}}, {{1}, {2}}};
  s.placement.replica_of_micro_batch = {0, 1};
  s.prepares = {1, 0};
  return s;
}

TEST(Validate, ChecksWhatPrepares) {
  EXPECT_EQ(Verdict(Prepared()), "");
  Schedule s = Prepared();
  s.prepares = {1};
  EXPECT_EQ(Verdict(s), "1 stages say whether they prepare, of 2");
  const std::string training =
      "stages that prepare are for training, with whole micro-batches of one size";
  s = Prepared();
  s.forward_only = true;
  EXPECT_EQ(Verdict(s), training);
  s = Prepared();
  s.stages.SetReplayWindow(1);
  EXPECT_EQ(Verdict(s), training);
  s = Prepared();
  s.num_slices = 2;
  EXPECT_EQ(Verdict(s), training);
  s = Prepared();
  s.micro_batches_of_stage = {2, 2};
  EXPECT_EQ(Verdict(s), training);
  s = Prepared();
  s.prepares = {0, 1};
  EXPECT_EQ(Verdict(s),
            "edge 0-1: a stage that prepares takes outputs of a trained one of an earlier "
            "micro-batch alone");
  s = Prepared();
  s.stages = StageGraph::Chain(2);
  EXPECT_EQ(Verdict(s), "edge 0-1 of a stage that prepares must bring no gradient");
  s = Prepared();
  s.placement.groups[1][1] = {1};
  EXPECT_EQ(Verdict(s),
            "stage 1 is trained for all replicas and must have the same devices in each");
  s = Prepared();
  s.order[0] = Actions("0F0 0B0");
  EXPECT_EQ(Verdict(s), "device 0, position 1: 0B0: a stage that prepares has F only");
}

TEST(Validate, ChecksReplay) {
  const auto replay = [](int window) {
    Schedule s = Good();
    s.stages = StageGraph::FromEdges(2, {{0, 1, Reads::None()}});
    s.stages.SetReplayWindow(window);
    return s;
  };
  for (const int window : {1, 2}) EXPECT_EQ(Verdict(replay(window)), "");
  for (const int window : {-1, 3}) {
    EXPECT_EQ(Verdict(replay(window)),
              absl::StrCat("a replay of the last ", window,
                           " outputs; it must be 1 to 2, the micro-batches of a step"));
  }
  const std::string training = "replay is for training with whole micro-batches and one replica";
  Schedule s = replay(1);
  s.num_slices = 2;
  EXPECT_EQ(Verdict(s), training);
  s = replay(1);
  s.forward_only = true;
  EXPECT_EQ(Verdict(s), training);
  s = replay(1);
  s.placement.groups.push_back({{1}, {0}});
  EXPECT_EQ(Verdict(s), training);
  s = replay(1);
  s.placement.groups[0][1] = {0, 1};
  EXPECT_EQ(Verdict(s), "replay needs stages of one device");
  s = replay(1);
  s.stages = StageGraph::Chain(2);
  s.stages.SetReplayWindow(1);
  EXPECT_EQ(Verdict(s), "replay: edge 0-1 must bring no gradient");
  s = replay(1);
  s.placement.groups[0][1] = {0};
  EXPECT_EQ(Verdict(s), "replay: stages 0 and 1 must be on two devices");
  constexpr Reads kNone = Reads::None();
  s = ChainOf(2, {"0F0 0F1 0B0 0B1", "1F0 1B0 1F1 1B1", "2F0 2B0 2F1 2B1"});
  s.stages = StageGraph::FromEdges(3, {{0, 2, kNone}, {1, 2, kNone}});
  s.stages.SetReplayWindow(1);
  EXPECT_EQ(Verdict(s), "replay: stage 2 reads stages 0 and 1, whose samples would differ");
  s.stages = StageGraph::FromEdges(3, {{0, 1, kNone}});
  s.stages.SetReplayWindow(1);
  EXPECT_EQ(Verdict(s), "replay: stage 2 has no edge, so that no stage reads it");
  s.stages = StageGraph::FromEdges(3, {{0, 1, kNone}, {1, 2, kNone}});
  s.stages.SetReplayWindow(1);
  s.stages.edges[1].output = Reads::Replay(2);
  EXPECT_EQ(Verdict(s), "replay: edge 1-2 must have the same buffer as the others");
}

// Stage 1 runs one micro-batch for two of stage 0.
Schedule Uneven(const std::vector<std::string>& lines) {
  Schedule s = ChainOf(2, lines);
  s.micro_batches_of_stage = {2, 1};
  return s;
}

TEST(Validate, KnowsMicroBatchesOfDifferentSize) {
  EXPECT_THAT(Validate(Uneven({"0F0 0F1 0B0 0B1", "1F0 1B0"})), IsOk());
  Schedule s = ChainOf(2, {"0F0 0B0", "1F0 1B0 1F1 1B1"});
  s.micro_batches_of_stage = {1, 2};
  EXPECT_EQ(Verdict(s),
            "");  // the larger micro-batch waits for both gradients
  EXPECT_EQ(Verdict(Uneven({"0F0 0B0 0F1 0B1", "1F0 1B0"})),
            "deadlock: device 0 position 1 (0B0) waits for device 1 position 1 (1B0), which comes "
            "after device 1 position 0 (1F0), which waits for device 0 position 2 (0F1), which "
            "comes after device 0 position 1 (0B0)");
  EXPECT_EQ(Verdict(Uneven({"0F0 0F1 0B0 0B1", "1F0 1F1 1B0"})),
            "device 1, position 1: 1F1: micro-batch 1 does not exist; there are 1 at this stage");
  EXPECT_EQ(Verdict(Uneven({"0F0 0F1 0B0", "1F0 1B0"})),
            "device 0, position 3: 0B1 is missing (or its parts I and W); the list ends here");
}

TEST(Validate, RefusesMicroBatchesThatDoNotDivide) {
  Schedule s = ChainOf(6, {"0F0 0B0", "1F0 1B0"});
  s.micro_batches_of_stage = {6};
  EXPECT_EQ(Verdict(s), "1 stages have a number of micro-batches, of 2");
  s.micro_batches_of_stage = {6, 4};
  EXPECT_EQ(Verdict(s), "stage 1 runs 4 micro-batches, which must divide the schedule's 6");
  s.micro_batches_of_stage = {0, 6};
  EXPECT_EQ(Verdict(s), "stage 0 runs 0 micro-batches, which must divide the schedule's 6");
  s.micro_batches_of_stage = {3, 3};
  EXPECT_EQ(Verdict(s), "no stage runs all of the schedule's 6 micro-batches");
  s = ChainOf(6, {"0F0 0B0", "1F0 1B0", "2F0 2B0"});
  s.micro_batches_of_stage = {6, 3, 2};
  EXPECT_EQ(Verdict(s),
            "edge 1-2: its stages run 3 and 2 micro-batches; one number must divide the other");
  s = Uneven({"0F0 0F1 0B0 0B1", "1F0 1B0"});
  s.placement.groups.push_back({{1}, {0}});
  s.placement.replica_of_micro_batch = {0, 1};
  EXPECT_EQ(Verdict(s), "stage 1, micro-batch 0: it has samples of replicas 0 and 1");
}

TEST(Validate, RefusesSizesThatTheOrderCannotFill) {
  Schedule s = Good();
  s.num_slices = 30000;
  s.num_micro_batches = 1000000;
  s.placement.replica_of_micro_batch.resize(s.num_micro_batches);
  EXPECT_EQ(
      Verdict(s),
      "the order has 8 actions; 2 stages, 1000000 micro-batches and 30000 slices need at least "
      "120000000000");
}

TEST(Validate, ChecksWeightVersions) {
  EXPECT_EQ(
      Verdict(ChainOf(1, {"0F0@1 0B0 0S@1"})),
      "device 0, position 0: 0F0@1 needs weight version 1 of stage 0; the last one made before "
      "it is 0");
  EXPECT_EQ(Verdict(ChainOf(1, {"0F0 0B0 0S@2"})),
            "device 0, position 2: 0S@2: the next version of stage 0 is 1");
  EXPECT_EQ(Verdict(ChainOf(1, {"0F0 0B0 1S@1", "1F0 1B0"})),
            "device 0, position 2: 1S@1: the device does not hold stage 1");
  // A step is of a stage, and of no micro-batch or slice.
  Schedule s = ChainOf(1, {"0F0 0B0 0S@1"});
  EXPECT_EQ(Verdict(s), "");
  EXPECT_TRUE(BruteForceValid(s));
  s.order[0][2].micro_batch = 1;
  EXPECT_NE(Verdict(s), "");
  EXPECT_FALSE(BruteForceValid(s));
  s.order[0][2].micro_batch = 0;
  s.order[0][2].slice = 1;
  EXPECT_NE(Verdict(s), "");
  EXPECT_FALSE(BruteForceValid(s));
}

TEST(Validate, GroupMembersHoldTheSameActions) {
  Schedule s = ChainOf(1, {"0F0 0B0", "0F0"});
  s.stages = StageGraph::Chain(1);
  s.placement.groups = {{{0, 1}}};
  EXPECT_EQ(Verdict(s),
            "device 1, position 1: 0B0 is missing (or its parts I and W); the list ends here");
  s.order[1] = Actions("0F0 0I0 0W0");
  EXPECT_EQ(Verdict(s),
            "device 1, position 1: 0I0: devices 0+1 share stage 0 and must split its backwards "
            "alike, and device 0 does not split this one");
  EXPECT_FALSE(BruteForceValid(s));
  s.order[1] = Actions("0F0 0B0");
  EXPECT_THAT(Validate(s), IsOk());
}

TEST(Validate, PrintsTheShortestCycle) {
  EXPECT_EQ(
      Verdict(ChainOf(2, {"0F0 0B0 0F1 0B1", "1F0 1F1 1B0 1B1"})),
      "deadlock: device 0 position 1 (0B0) waits for device 1 position 2 (1B0), which comes after "
      "device 1 position 1 (1F1), which waits for device 0 position 2 (0F1), which comes after "
      "device 0 position 1 (0B0)");
  // Three devices wait in a ring and two of them in a shorter one.
  const std::string verdict =
      Verdict(ChainOf(2, {"0F0 0B0 0F1 0B1", "1F0 1F1 1B0 1B1", "2F0 2F1 2B0 2B1"}));
  EXPECT_THAT(verdict, HasSubstr("device 0 position 1 (0B0) waits for device 1 position 2 (1B0)"));
  EXPECT_EQ(verdict.find("device 2"), std::string::npos) << verdict;
}

TEST(Validate, PrintsARingOfThree) {
  // No two devices wait for each other alone: 0 for 1, 1 for 2, 2 for 0.
  Schedule s = ChainOf(3, {"1F1 0F0 0B0 1B1", "1F2 0F1 0B1 1B2", "1F0 0F2 0B2 1B0"});
  s.stages = StageGraph::Chain(2);
  s.placement.groups = {{{0}, {2}}, {{1}, {0}}, {{2}, {1}}};
  s.placement.replica_of_micro_batch = {0, 1, 2};
  EXPECT_EQ(
      Verdict(s),
      "deadlock: device 0 position 0 (1F1) waits for device 1 position 1 (0F1), which comes after "
      "device 1 position 0 (1F2), which waits for device 2 position 1 (0F2), which comes after "
      "device 2 position 0 (1F0), which waits for device 0 position 1 (0F0), which comes after "
      "device 0 position 0 (1F1)");
}

TEST(Validate, AgreesWithBruteForceOnMutations) {
  std::vector<RandomShape> shapes = Shapes();
  int accepted = 0, refused = 0;
  const CounterRng rng(3, "mutations");
  uint64_t n = 0;
  for (size_t i = 0; i < shapes.size(); ++i) {
    for (int trial = 0; trial < 150; ++trial) {
      Schedule s = RandomOrder(shapes[i], i);
      if (!Mutate(rng, &n, &s)) continue;
      const bool valid = BruteForceValid(s);
      const absl::Status status = Validate(s);
      ASSERT_EQ(status.ok(), valid) << status;
      ++(valid ? accepted : refused);
    }
  }
  // And steps with versions: one device's, and PipeDream on two.
  const Schedule stepped[] = {ChainOf(2, {"0F0 0B0 0S@1 0F1@1 0B1@1 0S@2"}),
                              ChainOf(3, {"0F0 0F1 0B0 0S@1 0F2@1 0B1 0S@2 0B2@1 0S@3",
                                          "1F0 1B0 1S@1 1F1@1 1B1@1 1S@2 1F2@2 1B2@2 1S@3"})};
  for (int trial = 0; trial < 2000; ++trial) {
    Schedule s = stepped[trial % 2];
    if (!Mutate(rng, &n, &s)) continue;
    const bool valid = BruteForceValid(s);
    const absl::Status status = Validate(s);
    ASSERT_EQ(status.ok(), valid) << status;
    ++(valid ? accepted : refused);
  }
  EXPECT_GT(accepted, 300);  // both verdicts are exercised
  EXPECT_GT(refused, 300);
}

}  // namespace
}  // namespace pipelab
