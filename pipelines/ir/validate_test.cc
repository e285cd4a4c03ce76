// The validator's verdicts, word for word: they are what a user with a broken schedule sees.
#include "pipelines/ir/validate.h"

#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "pipelines/ir/brute_force.h"
#include "pipelines/ir/test_schedules.h"
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
  s.stages = StageGraph::FromEdges(2, {{0, 1}, {1, 0, 1}});
  EXPECT_EQ(
      Verdict(s),
      "the stage graph has a cycle, at or before stage 0; a late gradient breaks none: outputs "
      "are never late");
  s = Good();
  std::swap(s.stages.in_edges[0], s.stages.in_edges[1]);
  EXPECT_THAT(Verdict(s), HasSubstr("do not fit its edges"));
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
  EXPECT_GT(accepted, 300);  // both verdicts are exercised
  EXPECT_GT(refused, 300);
}

}  // namespace
}  // namespace pipelab
