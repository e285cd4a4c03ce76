// Synthesis against brute force, the simulator and the catalogue; proofs, and proofs that are
// wrong.
#include <algorithm>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "pipelines/schedules/guided_order.h"
#include "pipelines/synthesis/beam.h"
#include "pipelines/synthesis/bound.h"
#include "pipelines/synthesis/check_proof.h"
#include "pipelines/synthesis/evaluate.h"
#include "pipelines/synthesis/exact.h"
#include "pipelines/synthesis/problem.h"
#include "pipelines/synthesis/step_problem.h"
#include "pipelines/synthesis/synthesis_testing.h"
#include "pipelines/synthesis/synthesize.h"
#include "tools/base/status_matchers.h"

namespace pipelab {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

struct PlacedShape {
  int devices, micro_batches;
  std::vector<int> device_of_stage;
};

std::vector<PlacedShape> SmallShapes() {
  return {{2, 3, {0, 1}},
          {1, 2, {0, 0}},
          {2, 1, {0, 1, 1, 0}},
          {3, 2, {0, 1, 2}},
          {2, 1, {0, 1, 0, 1}}};
}

TEST(ExactSearch, IsBruteForce) {
  int feasible = 0;
  for (const PlacedShape& shape : SmallShapes()) {
    for (uint64_t seed = 0; seed < 40; ++seed) {
      const SynthesisProblem p =
          RandomProblem(seed, shape.devices, shape.micro_batches, shape.device_of_stage);
      if (!CheckProblem(p).ok()) continue;
      const int64_t least = ShortestOfAll(p);
      const Heads heads = ComputeHeads(p, /*memory=*/true);
      ExactOptions options;
      options.shorter_than = kNoMakespan;
      const ExactResult found = SearchExactly(p, heads, options);
      ASSERT_TRUE(found.complete);
      EXPECT_EQ(found.makespan, least) << seed << " on " << shape.devices;
      if (least == kNoMakespan) continue;
      ++feasible;
      const Bound bound = BestBound(p);
      EXPECT_LE(bound.value, least) << seed << " " << ToText(bound);
      Proof proof{found.words, found.makespan, bound, found.log};
      EXPECT_THAT(CheckProof(p, proof), IsOk()) << seed;
      proof.makespan = least;
      options.shorter_than = least;  // that nothing is shorter, again
      EXPECT_TRUE(SearchExactly(p, heads, options).words.empty()) << seed;
    }
  }
  EXPECT_GT(feasible, 100);
}

// The evaluator against the makespan of guided_order.h; CheckProof compares it with the simulator.
TEST(WordEvaluator, IsTheMakespanOfTheSchedule) {
  for (uint64_t seed = 0; seed < 30; ++seed) {
    SynthesisProblem p = RandomProblem(seed, 4, 9, ZigZagDevices(4, 1 + seed % 3));
    p.limits.free.assign(4, Bytes(1000));
    p.split_backward = true;
    const Heads heads = ComputeHeads(p, true);
    const OrderWords words = BeamSearch(p, heads, {});
    ASSERT_FALSE(words.empty());
    const int64_t makespan = WordEvaluator(p).Makespan(words);
    SynthesisProblem plain = p;  // Makespan knows no R
    Schedule schedule = ScheduleOf(p, words);
    for (auto& list : schedule.order) {
      list.erase(std::remove_if(list.begin(), list.end(),
                                [](const Action& a) { return a.kind == ActionKind::kRecompute; }),
                 list.end());
    }
    for (int s = 0; s < p.stages(); ++s) plain.lengths.recompute[s] = p.Rebuild(s);
    EXPECT_EQ(makespan, Makespan(schedule, plain.lengths)) << seed;
    EXPECT_THAT(CheckProof(p, {words, makespan, BestBound(p), ""}), IsOk()) << seed;
    EXPECT_EQ(*WordsOf(p, ScheduleOf(p, words)), words);
  }
}

// A device in front has more micro-batches in flight: 3, 3, 2 and 1 of them here.
TEST(StagesThatMakeRoom, AreThoseWithoutRoomForWhatIsInFlight) {
  SynthesisProblem none = UnitProblem(4, 8, LoopedDevices(4, 1));
  EXPECT_THAT(StagesThatMakeRoom(none, none, 0), ElementsAre(false, false, false, false));
  SynthesisProblem all = none;
  for (auto& use : all.limits.forward) use = {Bytes(1), Bytes(0)};
  none.limits.free.assign(4, Bytes(2));
  all.limits.free = none.limits.free;
  EXPECT_THAT(StagesThatMakeRoom(none, all, 0), ElementsAre(true, true, false, false));
  EXPECT_THAT(StagesThatMakeRoom(none, all, 1), ElementsAre(true, true, true, false));
}

// With slices one more is in flight for each but the first: 4, 4, 3 and 2 of them here.
TEST(StagesThatMakeRoom, CountSlices) {
  SynthesisProblem none = UnitSlices(4, 8, 2, LoopedDevices(4, 1));
  none.limits.free.assign(4, Bytes(3));
  SynthesisProblem all = none;
  for (auto& use : all.limits.forward) use = {Bytes(1), Bytes(0)};
  EXPECT_THAT(StagesThatMakeRoom(none, all, 0), ElementsAre(true, true, false, false));
  all.limits.free.assign(4, Bytes(4));
  none.limits.free = all.limits.free;
  EXPECT_THAT(StagesThatMakeRoom(none, all, 0), ElementsAre(false, false, false, false));
  EXPECT_THAT(StagesThatMakeRoom(none, all, 1), ElementsAre(true, true, true, false));
}

TEST(WordEvaluator, ACriticalPathHasNoPauses) {
  const SynthesisProblem p = RandomProblem(3, 4, 9, LoopedDevices(4, 1));
  const OrderWords words = BeamSearch(p, ComputeHeads(p, true), {});
  WordEvaluator evaluator(p);
  const int64_t makespan = evaluator.Makespan(words);
  const std::vector<WordPlace> path = evaluator.CriticalPath(words);
  ASSERT_FALSE(path.empty());
  EXPECT_EQ(evaluator.Begins(path[0].device)[path[0].index], 0);
  const WordPlace last = path.back();
  EXPECT_EQ(evaluator.Begins(last.device)[last.index] + p.Length(words[last.device][last.index]),
            makespan);
}

// OrderWords that wait for each other have no makespan.
TEST(WordEvaluator, SeesALock) {
  const SynthesisProblem p = UnitProblem(2, 1, {0, 1, 0, 1});
  const auto word = [](const std::vector<std::pair<int, int>>& symbols) {
    std::vector<Symbol> own;
    for (const auto& [stage, kind] : symbols) own.push_back(SymbolOf(stage, kind));
    return own;
  };
  const OrderWords words = {word({{2, 0}, {0, 0}, {2, 1}, {2, 2}, {0, 1}, {0, 2}}),
                            word({{1, 0}, {3, 0}, {3, 1}, {3, 2}, {1, 1}, {1, 2}})};
  EXPECT_EQ(WordEvaluator(p).Makespan(words), kNoMakespan);
}

// Closed forms: with room for P micro-batches zero bubble's 3 M + P - 1 is the shortest.
TEST(Synthesize, EqualTimes) {
  for (const int devices : {2, 3, 4}) {
    for (const int micro_batches : {devices, 8}) {
      SynthesisProblem p = UnitProblem(devices, micro_batches, LoopedDevices(devices, 1));
      p.limits.free.assign(devices, Bytes(devices));
      PIPELAB_ASSERT_OK_AND_ASSIGN(const Synthesis found, Synthesize(p, {}));
      EXPECT_EQ(found.proof.makespan, 3 * micro_batches + devices - 1);
      EXPECT_TRUE(found.proof.optimal());
    }
  }
}

TEST(Synthesize, IsNeverLongerThanTheCatalogueAndItsProofHolds) {
  int shorter = 0, compared = 0;
  for (uint64_t seed = 0; seed < 24; ++seed) {
    const int devices = 2 + seed % 3, stages = 1 + seed / 3 % 2;
    SynthesisProblem p = RandomProblem(
        seed, devices, devices + seed % 5,
        seed % 2 == 0 ? LoopedDevices(devices, stages) : ZigZagDevices(devices, stages));
    if (!CheckProblem(p).ok()) continue;
    SynthesisOptions options;
    options.rounds = 3;
    options.exact_nodes = 20000;
    const absl::StatusOr<Synthesis> found = Synthesize(p, options);
    if (!found.ok()) continue;  // room for one micro-batch of each stage, and not of all
    EXPECT_THAT(CheckProof(p, found->proof), IsOk()) << seed;
    EXPECT_GE(found->proof.makespan, found->proof.lower_bound());
    const std::vector<CatalogueOrder> orders = CatalogueOrders(p);
    if (orders.empty()) continue;
    ++compared;
    EXPECT_LE(found->proof.makespan, orders[0].makespan) << seed;
    shorter += found->proof.makespan < orders[0].makespan ? 1 : 0;
  }
  EXPECT_GT(compared, 5);
  EXPECT_GT(shorter, 0);
}

TEST(Synthesize, TheSameSeedGivesTheSameOrder) {
  const SynthesisProblem p = RandomProblem(5, 4, 10, LoopedDevices(4, 1));
  PIPELAB_ASSERT_OK_AND_ASSIGN(const Synthesis a, Synthesize(p, {}));
  PIPELAB_ASSERT_OK_AND_ASSIGN(const Synthesis b, Synthesize(p, {}));
  EXPECT_EQ(a.proof.words, b.proof.words);
  EXPECT_EQ(a.found_by, b.found_by);
}

TEST(Synthesize, StopsWithTheBestSoFar) {
  SynthesisProblem p = UnitProblem(4, 16, ZigZagDevices(4, 2));
  p.limits.free.assign(4, Bytes(4));
  SynthesisOptions options;
  int asked = 0;
  options.stop = [&asked] { return ++asked > 3; };
  PIPELAB_ASSERT_OK_AND_ASSIGN(const Synthesis found, Synthesize(p, options));
  EXPECT_TRUE(found.stopped);
  EXPECT_FALSE(found.proof.optimal());
  EXPECT_THAT(CheckProof(p, found.proof), IsOk());
}

TEST(CheckProof, RefusesWhatIsWrong) {
  SynthesisProblem p = UnitProblem(4, 8, LoopedDevices(4, 1));
  p.limits.free.assign(4, Bytes(2));
  SynthesisOptions options;
  PIPELAB_ASSERT_OK_AND_ASSIGN(const Synthesis found, Synthesize(p, options));
  const Proof& proof = found.proof;
  ASSERT_FALSE(proof.log.empty());  // it takes a tree
  ASSERT_THAT(CheckProof(p, proof), IsOk());
  const auto refused = [&](const char* why, const std::function<void(Proof*)>& change) {
    Proof wrong = proof;
    change(&wrong);
    EXPECT_THAT(CheckProof(p, wrong), StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr(why)));
  };
  refused("the order takes", [](Proof* w) { --w->makespan; });
  refused("", [](Proof* w) { std::swap(w->words[1][0], w->words[1][5]); });
  refused("", [](Proof* w) { w->words[2].pop_back(); });
  refused("bytes", [](Proof* w) {
    w->words[0].clear();
    for (int i = 0; i < 24; ++i) w->words[0].push_back(SymbolOf(0, i / 8));
  });
  refused("sum of its parts", [](Proof* w) { ++w->bound.value; });
  refused("the work", [](Proof* w) {
    w->bound.work += 1;
    w->bound.value += 1;
  });
  refused("the work", [](Proof* w) {
    w->bound.head += 1;
    w->bound.value += 1;
  });
  refused("ends too early", [](Proof* w) { w->log.pop_back(); });
  refused("more nodes", [](Proof* w) { w->log += kProofBound; });
  // Each node that branches or ends, said to be something else; some of them happen to be closed
  // as well, since the bound may already hold a node before.
  int wrong = 0, all = 0;
  for (size_t i = 0; i < proof.log.size(); i += 7) {
    for (const char letter : {kProofBound, kProofDominated, kProofStuck, kProofDone}) {
      if (proof.log[i] != kProofBranch) continue;
      Proof changed = proof;
      changed.log[i] = letter;
      ++all;
      wrong += CheckProof(p, changed).ok() ? 0 : 1;
    }
  }
  EXPECT_EQ(wrong, all);
  EXPECT_GT(all, 100);
}

// A bound is about a problem: with more room or shorter times it does not hold.
TEST(CheckProof, RefusesTheBoundOfAnotherProblem) {
  for (uint64_t seed = 0; seed < 20; ++seed) {
    const SynthesisProblem p = RandomProblem(seed, 3, 6, LoopedDevices(3, 1));
    if (!CheckProblem(p).ok()) continue;
    SynthesisProblem easier = p;
    for (int64_t& time : easier.lengths.forward) time = std::max<int64_t>(1, time / 2);
    PIPELAB_ASSERT_OK_AND_ASSIGN(const Synthesis found, Synthesize(easier, {}));
    Proof proof = found.proof;
    ASSERT_THAT(CheckProof(easier, proof), IsOk());
    proof.bound = BestBound(p);
    if (proof.bound.value <= proof.makespan) continue;
    EXPECT_FALSE(CheckProof(easier, proof).ok()) << seed;
  }
}

TEST(CheckProblem, SaysWhatIsWrong) {
  SynthesisProblem p = UnitProblem(2, 4, {0, 1});
  p.limits.free.assign(2, Bytes(0));
  EXPECT_THAT(CheckProblem(p), StatusIs(absl::StatusCode::kResourceExhausted,
                                        HasSubstr("one micro-batch of stage 0 needs 1")));
  p = UnitProblem(2, 4, {0, 1});
  p.lengths.forward.push_back(1);
  EXPECT_THAT(CheckProblem(p),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("times of 3 stages")));
  p = UnitProblem(2, 4, {0, 1});
  p.lengths.forward[0] = -1;
  EXPECT_THAT(CheckProblem(p), StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("-1 ns")));
  p = UnitProblem(2, 4, {0, 2});
  EXPECT_THAT(CheckProblem(p), StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("device 2")));
  p = UnitProblem(2, 4, {0, 1, 0});
  p.lengths.hop = {1, 2, 0};
  EXPECT_THAT(CheckProblem(p), StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("one time")));
}

}  // namespace
}  // namespace pipelab
