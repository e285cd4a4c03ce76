// The validator's verdicts, word for word: they are what a user with a broken schedule sees.
#include "pipelines/ir/validate.h"

#include <algorithm>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "pipelines/ir/dependency.h"
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
            "device 1: 1B1 is missing (or its parts I and W)");
  EXPECT_EQ(Verdict(ChainOf(2, {"0F0 0F1 0B0 0B1", "1F0 1B0 1B1"})), "device 1: 1F1 is missing");
  EXPECT_EQ(Verdict(ChainOf(1, {"0F0 0I0"})), "device 0: 0W0 is missing: the weight part of 0I0");
  EXPECT_EQ(Verdict(ChainOf(1, {"0F0 0W0"})), "device 0: 0I0 is missing: the input part of 0W0");
  EXPECT_EQ(Verdict(ChainOf(1, {"0F0 0B0 0I0"})),
            "device 0, position 2: 0I0 repeats a part of 0B0 (position 1)");
  EXPECT_EQ(Verdict(ChainOf(2, {"0F0 0R0 0B0 0F1 0B1"})),
            "device 0: 0R1 is missing: a stage recomputes all micro-batches or none");
  EXPECT_EQ(Verdict(ChainOf(1, {"0F0 0F0 0B0"})),
            "device 0, position 1: 0F0 comes a second time (first at position 0)");
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
  s = Good();
  std::swap(s.stages.in_edges[0], s.stages.in_edges[1]);
  EXPECT_THAT(Verdict(s), HasSubstr("do not fit its edges"));
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
  EXPECT_EQ(Verdict(s), "device 1: 0B0 is missing (or its parts I and W)");
  s.order[1] = Actions("0F0 0I0 0W0");
  EXPECT_THAT(Verdict(s), HasSubstr("devices 0+1 share stage 0 and must hold the same actions"));
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

// The judge: tries the actions of all devices again and again, in plain sets.
bool BruteForceValid(const Schedule& s) {
  using Key = std::tuple<int, int, int, int>;
  const auto key = [](const Event& e) {
    return Key(static_cast<int>(e.kind), e.stage, e.micro_batch, e.slice);
  };
  std::set<std::tuple<int, int, int>> done;  // kind, stage, micro-batch
  std::set<int> recomputed;
  for (int d = 0; d < s.num_devices(); ++d) {
    for (const Action& a : s.order[d]) {
      if (s.placement.Group(a.stage, a.micro_batch)[0] != d) return false;
      if (!done.insert({static_cast<int>(a.kind), a.stage, a.micro_batch}).second) return false;
      if (a.kind == ActionKind::kRecompute) recomputed.insert(a.stage);
    }
  }
  const auto has = [&](ActionKind k, int stage, int m) {
    return done.count({static_cast<int>(k), stage, m}) > 0;
  };
  for (int stage = 0; stage < s.num_stages(); ++stage) {
    for (int m = 0; m < s.num_micro_batches; ++m) {
      const bool b = has(ActionKind::kBackward, stage, m),
                 i = has(ActionKind::kBackwardInput, stage, m),
                 w = has(ActionKind::kBackwardWeight, stage, m);
      if (!has(ActionKind::kForward, stage, m) || !((b && !i && !w) || (!b && i && w))) {
        return false;
      }
      if (recomputed.count(stage) != size_t{has(ActionKind::kRecompute, stage, m)}) return false;
    }
  }
  std::set<Key> over;
  std::vector<size_t> at(s.num_devices(), 0);
  for (bool moved = true; moved;) {
    moved = false;
    for (int d = 0; d < s.num_devices(); ++d) {
      if (at[d] == s.order[d].size()) continue;
      const Action& a = s.order[d][at[d]];
      bool ready = true;
      ForEachDependency(s.stages, 1, recomputed.count(a.stage) > 0, a,
                        [&](const Event& e) { ready &= over.count(key(e)) > 0; });
      if (!ready) continue;
      ForEachResult(a, [&](const Event& e) { over.insert(key(e)); });
      ++at[d];
      moved = true;
    }
  }
  for (int d = 0; d < s.num_devices(); ++d) {
    if (at[d] < s.order[d].size()) return false;
  }
  return true;
}

TEST(Validate, AgreesWithBruteForceOnMutations) {
  std::vector<RandomShape> shapes = Shapes();
  int accepted = 0, refused = 0;
  const CounterRng rng(3, "mutations");
  uint64_t n = 0;
  for (size_t i = 0; i < shapes.size(); ++i) {
    bool single = shapes[i].num_slices == 1;
    for (const auto& replica : shapes[i].placement.groups) {
      for (const auto& group : replica) single &= group.size() == 1;
    }
    if (!single) continue;  // the judge knows neither groups nor slices
    for (int trial = 0; trial < 150; ++trial) {
      Schedule s = RandomOrder(shapes[i], i);
      std::vector<Action>& list = s.order[rng.Below(n++, s.order.size())];
      std::vector<Action>& other = s.order[rng.Below(n++, s.order.size())];
      if (list.empty()) continue;
      const size_t at = rng.Below(n++, list.size());
      const Action a = list[at];
      switch (rng.Below(n++, 4)) {
        case 0:
          list.erase(list.begin() + static_cast<std::ptrdiff_t>(at));
          break;
        case 1:
          list.push_back(a);
          break;
        case 2:
          std::swap(list[at], list[rng.Below(n++, list.size())]);
          break;
        case 3:
          list.erase(list.begin() + static_cast<std::ptrdiff_t>(at));
          other.insert(
              other.begin() + static_cast<std::ptrdiff_t>(rng.Below(n++, other.size() + 1)), a);
          break;
      }
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
