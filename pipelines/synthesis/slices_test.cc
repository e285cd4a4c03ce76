// Token slices in synthesis: brute force, the simulator, the catalogue, proofs that are wrong.
#include <algorithm>
#include <cstdint>
#include <functional>
#include <set>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "pipelines/ir/schedule.h"
#include "pipelines/ir/validate.h"
#include "pipelines/synthesis/beam.h"
#include "pipelines/synthesis/bound.h"
#include "pipelines/synthesis/check_proof.h"
#include "pipelines/synthesis/evaluate.h"
#include "pipelines/synthesis/exact.h"
#include "pipelines/synthesis/problem.h"
#include "pipelines/synthesis/synthesis_testing.h"
#include "pipelines/synthesis/synthesize.h"
#include "tools/base/status_matchers.h"
#include "tools/base/units.h"

namespace pipelab {
namespace {

using testing::HasSubstr;

void MakeWhole(SynthesisProblem* p) {
  p->split_backward = false;
  for (auto& use : p->limits.backward_input) use = {Bytes(0), Bytes(-1)};
}

struct SlicedShape {
  int devices, micro_batches, slices;
  std::vector<int> device_of_stage;
};

TEST(Slices, ExactSearchIsBruteForce) {
  const std::vector<SlicedShape> shapes = {{2, 2, 2, {0, 1}}, {1, 2, 2, {0}},
                                           {2, 1, 3, {0, 1}}, {2, 1, 2, {0, 1, 0}},
                                           {1, 1, 2, {0, 0}}, {3, 1, 2, {0, 1, 2}}};
  int feasible = 0, memory = 0;
  for (const SlicedShape& shape : shapes) {
    for (uint64_t seed = 0; seed < 25; ++seed) {
      const SynthesisProblem p = RandomSlices(seed, shape.devices, shape.micro_batches,
                                              shape.slices, shape.device_of_stage);
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
      memory += bound.reason == BoundReason::kMemory || bound.reason == BoundReason::kHolding;
      EXPECT_THAT(CheckProof(p, {found.words, found.makespan, bound, found.log}), IsOk())
          << seed << " on " << shape.devices << ", " << shape.slices << " slices";
    }
  }
  EXPECT_GT(feasible, 80);
  EXPECT_GT(memory, 5);
}

// Beams on larger ones: the simulator agrees on their orders (CheckProof replays them), the bound
// holds, and nothing that is known of a beginning is above what it becomes.
TEST(Slices, OrdersOfBeamsAreReplayedAndBoundsHold) {
  int found = 0;
  std::set<BoundReason> reasons;
  for (uint64_t seed = 0; seed < 40; ++seed) {
    const int slices = 2 + seed % 3, stages = 1 + seed % 2;
    SynthesisProblem p = RandomSlices(
        seed, 4, 5, slices, seed % 4 < 2 ? ZigZagDevices(4, stages) : LoopedDevices(4, stages));
    if (!p.limits.free.empty()) {
      for (Bytes& free : p.limits.free) free = free * 2;
    }
    if (!CheckProblem(p).ok()) continue;
    const OrderWords words = BeamSearch(p, ComputeHeads(p, true), {});
    if (words.empty()) continue;
    ++found;
    for (int d = 0; d < 4; ++d) EXPECT_TRUE(IsWordOf(p, d, words[d])) << seed;
    const Schedule schedule = ScheduleOf(p, words);
    EXPECT_THAT(Validate(schedule), IsOk()) << seed;
    EXPECT_EQ(schedule.num_slices, slices);
    PIPELAB_ASSERT_OK_AND_ASSIGN(const OrderWords again, WordsOf(p, schedule));
    EXPECT_EQ(again, words);
    const Bound bound = BestBound(p);
    reasons.insert(bound.reason);
    WordEvaluator evaluator(p);
    const int64_t makespan = evaluator.Makespan(words);
    EXPECT_LE(bound.value, makespan) << seed << " " << ToText(bound);
    EXPECT_THAT(CheckProof(p, {words, makespan, bound, ""}), IsOk()) << seed;
    const std::vector<WordPlace> path = evaluator.CriticalPath(words);
    ASSERT_FALSE(path.empty());
    if (p.recomputed.empty()) {
      EXPECT_EQ(evaluator.Begins(path[0].device)[path[0].index], 0) << seed;
    }
  }
  EXPECT_GT(found, 20);
  EXPECT_GE(reasons.size(), 2u);
}

// Seq1F1B's closed form, in its own memory: device r holds P - r + S - 1 slices, the step is that
// of S M items. With whole backwards nothing is shorter.
TEST(Slices, Seq1F1BIsReproduced) {
  for (const int slices : {2, 4}) {
    for (const int devices : {2, 4}) {
      const int micro_batches = 4;
      SynthesisProblem p = UnitSlices(devices, micro_batches, slices, LoopedDevices(devices, 1));
      MakeWhole(&p);
      for (int r = 0; r < devices; ++r) p.limits.free.push_back(Bytes(devices - r + slices - 1));
      PIPELAB_ASSERT_OK_AND_ASSIGN(const Synthesis found, Synthesize(p, {}));
      EXPECT_EQ(found.catalogue.scheme, "seq1f1b") << devices << " " << slices;
      // F = 1, B = 2.
      EXPECT_EQ(found.catalogue.makespan, 3 * (slices * micro_batches + devices - 1));
      EXPECT_EQ(found.proof.makespan, found.catalogue.makespan);
      EXPECT_TRUE(found.proof.optimal());
      EXPECT_THAT(CheckProof(p, found.proof), IsOk());
      // With one slice less of room seq1f1b does not fit.
      p.limits.free[0] = p.limits.free[0] - Bytes(1);
      for (const CatalogueOrder& order : CatalogueOrders(p)) EXPECT_NE(order.scheme, "seq1f1b");
    }
  }
}

// All sliced schemes are starts, in memory where they fit.
TEST(Slices, TheCatalogueHasStarts) {
  std::set<std::string> schemes;
  for (const int stages : {1, 2}) {
    for (const bool whole : {false, true}) {
      SynthesisProblem p = UnitSlices(4, 4, 2, LoopedDevices(4, stages));
      if (whole) MakeWhole(&p);
      for (const CatalogueOrder& order : CatalogueOrders(p)) {
        schemes.insert(order.scheme);
        EXPECT_THAT(CheckProof(p, {order.words, order.makespan, BestBound(p), ""}), IsOk());
      }
    }
  }
  for (const char* scheme : {"terapipe", "seq1f1b", "interleaved_seq1f1b", "zb_seq1f1b"}) {
    EXPECT_EQ(schemes.count(scheme), 1u) << scheme;
  }
  EXPECT_EQ(schemes.count("1f1b"), 0u);
}

TEST(Slices, NeverLongerThanTheCatalogueAndItsProofHolds) {
  int shorter = 0, compared = 0;
  for (uint64_t seed = 0; seed < 20; ++seed) {
    const int devices = 2 + seed % 3, stages = 1 + seed / 3 % 2;
    SynthesisProblem p = RandomSlices(seed, devices, devices, 2, LoopedDevices(devices, stages));
    if (!p.limits.free.empty()) p.limits.free.assign(devices, Bytes(30));
    if (!CheckProblem(p).ok()) continue;
    SynthesisOptions options;
    options.rounds = 2;
    options.widest = 64;
    options.exact_nodes = 10000;
    const absl::StatusOr<Synthesis> found = Synthesize(p, options);
    if (!found.ok()) continue;
    EXPECT_THAT(CheckProof(p, found->proof), IsOk()) << seed;
    const std::vector<CatalogueOrder> orders = CatalogueOrders(p);
    if (orders.empty()) continue;
    ++compared;
    EXPECT_LE(found->proof.makespan, orders[0].makespan) << seed;
    shorter += found->proof.makespan < orders[0].makespan ? 1 : 0;
  }
  EXPECT_GT(compared, 8);
  EXPECT_GT(shorter, 3);
}

// What slices are for: less memory than a whole micro-batch a device holds, and a shorter way in.
TEST(Slices, GiveAShorterStepInTheSameMemory) {
  SynthesisProblem whole = UnitProblem(4, 4, LoopedDevices(4, 1));
  for (auto* list :
       {&whole.lengths.forward, &whole.lengths.backward_input, &whole.lengths.backward_weight}) {
    for (int64_t& time : *list) time *= 2;
  }
  whole.limits.free.assign(4, Bytes(4));
  SynthesisProblem halves = UnitSlices(4, 4, 2, LoopedDevices(4, 1));
  halves.limits.free.assign(4, Bytes(8));  // of halves
  PIPELAB_ASSERT_OK_AND_ASSIGN(const Synthesis one, Synthesize(whole, {}));
  PIPELAB_ASSERT_OK_AND_ASSIGN(const Synthesis two, Synthesize(halves, {}));
  EXPECT_LT(two.proof.makespan, one.proof.lower_bound());
}

TEST(Slices, ProofsThatAreWrongAreRefused) {
  SynthesisProblem p = UnitSlices(2, 3, 2, {0, 1});
  p.lengths.forward = {1, 2, 1, 2};
  p.lengths.backward_input = {2, 3, 2, 3};
  p.limits.free.assign(2, Bytes(3));
  PIPELAB_ASSERT_OK_AND_ASSIGN(const Synthesis found, Synthesize(p, {}));
  const Proof& proof = found.proof;
  ASSERT_THAT(CheckProof(p, proof), IsOk());
  const auto refused = [&p, &proof](const char* why, const std::function<void(Proof*)>& change) {
    Proof wrong = proof;
    change(&wrong);
    EXPECT_THAT(CheckProof(p, wrong), StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr(why)));
  };
  refused("the order takes", [](Proof* w) { --w->makespan; });
  refused("", [](Proof* w) { w->words[1].pop_back(); });
  refused("bytes", [](Proof* w) {
    w->words[0].clear();
    for (int i = 0; i < 18; ++i) w->words[0].push_back(SymbolOf(0, i / 6));
  });
  refused("of a device or pass", [](Proof* w) { w->bound.unit = 6; });
  refused("bound", [](Proof* w) {
    ++w->bound.work;
    ++w->bound.value;
  });
  // The first backward before the micro-batch's last forward.
  const Symbol f = SymbolOf(0, kPassF), i = SymbolOf(0, kPassI), w = SymbolOf(0, kPassW);
  std::vector<Symbol> early = {f, i, w, f, i, w, f, i, w, f, i, w, f, i, w, f, i, w};
  EXPECT_FALSE(IsWordOf(p, 0, early));
  refused("", [&early](Proof* wrong) { wrong->words[0] = early; });
  // The same bound and order where a slice is faster, or holds more.
  SynthesisProblem other = p;
  other.lengths.forward[1] = 1;
  EXPECT_FALSE(CheckProof(other, proof).ok());
  other = p;
  other.limits.forward[0] = {Bytes(3), Bytes(3)};
  EXPECT_FALSE(CheckProof(other, proof).ok());
}

// Nodes of trees that branch, said to be something else.
TEST(Slices, TreesThatAreWrongAreRefused) {
  int wrong = 0, all = 0, trees = 0;
  for (uint64_t seed = 0; seed < 40 && trees < 3; ++seed) {
    const SynthesisProblem p = RandomSlices(seed, 3, 3, 2, LoopedDevices(3, 1));
    if (!CheckProblem(p).ok()) continue;
    const absl::StatusOr<Synthesis> found = Synthesize(p, {});
    if (!found.ok() || found->proof.log.empty() || found->proof.log.size() > 20000) continue;
    ++trees;
    const Proof& proof = found->proof;
    ASSERT_THAT(CheckProof(p, proof), IsOk());
    const size_t step = std::max<size_t>(1, proof.log.size() / 12);
    for (size_t i = 0; i < proof.log.size(); i += step) {
      if (proof.log[i] != kProofBranch) continue;
      for (const char letter : {kProofBound, kProofDominated, kProofStuck, kProofDone}) {
        Proof changed = proof;
        changed.log[i] = letter;
        ++all;
        wrong += CheckProof(p, changed).ok() ? 0 : 1;
      }
    }
  }
  EXPECT_EQ(wrong, all);
  EXPECT_GT(all, 20);
}

TEST(Slices, WhatIsNotSaidIsRefusedInOneLine) {
  const auto refused = [](const SynthesisProblem& p, const char* why) {
    EXPECT_THAT(CheckProblem(p), StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr(why)));
  };
  SynthesisProblem p = UnitSlices(2, 4, 2, {0, 1});
  p.slices = 0;
  refused(p, "0 slices; at least one of each");
  EXPECT_FALSE(Synthesize(p, {}).ok());
  p = UnitSlices(2, 4, 2, {0, 1});
  p.slices = 4;
  refused(p, "times of 4 slices of stages (forward); the problem has 2 stages of 4 slices");
  p = UnitSlices(2, 4, 2, {0, 1});
  p.host_copy = {1, 1};
  p.may_offload = {true, false};
  refused(p, "offloading without times of copies");
  p.host_copy.assign(4, 1);
  p.read_later.assign(2, Bytes(0));
  refused(p, "read_later of 2 slices; must be 4");
  p = UnitSlices(2, 4, 2, {0, 1});
  p.limits.free.assign(2, Bytes(1));
  EXPECT_THAT(CheckProblem(p), StatusIs(absl::StatusCode::kResourceExhausted,
                                        HasSubstr("one micro-batch of stage 0 needs 2")));
}

}  // namespace
}  // namespace pipelab
