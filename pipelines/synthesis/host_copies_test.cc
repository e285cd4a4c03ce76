// Copies to the host and back as a part of the order: brute force, proofs, the rule, the schemes.
#include <algorithm>
#include <cstdint>
#include <functional>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "pipelines/synthesis/beam.h"
#include "pipelines/synthesis/bound.h"
#include "pipelines/synthesis/check_proof.h"
#include "pipelines/synthesis/evaluate.h"
#include "pipelines/synthesis/exact.h"
#include "pipelines/synthesis/problem.h"
#include "pipelines/synthesis/synthesis_testing.h"
#include "pipelines/synthesis/synthesize.h"
#include "tools/base/rng.h"
#include "tools/base/status_matchers.h"

namespace pipelab {
namespace {

using testing::HasSubstr;

// One stage at least is offloaded, with copies of unequal times, and none is recomputed.
SynthesisProblem RandomCopies(uint64_t seed, int devices, int micro_batches,
                              std::vector<int> device_of_stage) {
  SynthesisProblem p = RandomProblem(seed, devices, micro_batches, std::move(device_of_stage));
  const CounterRng random(seed, "copies");
  p.recomputed.clear();
  for (int s = 0; s < p.stages(); ++s) {
    p.host_copy.push_back(1 + static_cast<int64_t>(random.Below(2 * s, 5)));
    p.offloaded.push_back(random.Below(2 * s + 1, 2) == 0);
  }
  p.offloaded[seed % p.stages()] = true;
  // Where a quarter have no limit.
  if (seed % 4 == 3) p.limits.free.clear();
  return p;
}

TEST(HostCopies, ExactSearchIsBruteForce) {
  const std::vector<std::vector<int>> placements = {{0, 1}, {0}, {0, 1, 2}, {0, 1, 1, 0}, {0, 0}};
  const std::vector<int> micro_batches = {2, 3, 2, 1, 1};
  int feasible = 0;
  for (size_t shape = 0; shape < placements.size(); ++shape) {
    const int devices = 1 + *std::max_element(placements[shape].begin(), placements[shape].end());
    for (uint64_t seed = 0; seed < 16; ++seed) {
      const SynthesisProblem p =
          RandomCopies(seed, devices, micro_batches[shape], placements[shape]);
      if (!CheckProblem(p).ok()) continue;
      const int64_t least = ShortestOfAll(p);
      const Heads heads = ComputeHeads(p, /*memory=*/true);
      ExactOptions options;
      options.shorter_than = kNoMakespan;
      const ExactResult found = SearchExactly(p, heads, options);
      ASSERT_TRUE(found.complete);
      EXPECT_EQ(found.makespan, least) << seed << " of shape " << shape;
      if (least == kNoMakespan) continue;
      ++feasible;
      const Bound bound = BestBound(p);
      EXPECT_LE(bound.value, least) << seed << " " << ToText(bound);
      EXPECT_THAT(CheckProof(p, {found.words, found.makespan, bound, found.log}), IsOk())
          << seed << " of shape " << shape;
    }
  }
  EXPECT_GT(feasible, 50);
}

// Beams on larger ones: what they give is an order that the simulator agrees on.
TEST(HostCopies, OrdersOfBeamsAndTheirBoundsHold) {
  int found = 0, links = 0;
  for (uint64_t seed = 0; seed < 24; ++seed) {
    SynthesisProblem p = RandomCopies(seed, 4, 9, ZigZagDevices(4, 1 + seed % 2));
    for (int64_t& copy : p.host_copy) copy *= seed % 3 == 0 ? 4 : 1;
    if (!CheckProblem(p).ok()) continue;
    for (const double lead : {0.0, 1.0, 3.0}) {
      BeamOptions beam;
      beam.lead = lead;
      const OrderWords words = BeamSearch(p, ComputeHeads(p, true), beam);
      if (words.empty()) continue;
      ++found;
      for (int d = 0; d < 4; ++d) EXPECT_TRUE(IsWordOf(p, d, words[d])) << seed;
      const Bound bound = BestBound(p);
      links += bound.reason == BoundReason::kLink ? 1 : 0;
      EXPECT_THAT(CheckProof(p, {words, WordEvaluator(p).Makespan(words), bound, ""}), IsOk())
          << seed;
      EXPECT_EQ(*WordsOf(p, ScheduleOf(p, words)), words);
    }
  }
  EXPECT_GT(found, 40);
  EXPECT_GT(links, 0);
}

// Room for 4 of 8 micro-batches in flight, and the first four devices offload.
SynthesisProblem HalfRoom(int64_t copy) {
  SynthesisProblem p = UnitProblem(8, 16, LoopedDevices(8, 1));
  p.limits.free.assign(8, Bytes(4));
  p.host_copy.assign(8, copy);
  p.offloaded.assign(8, false);
  std::fill_n(p.offloaded.begin(), 4, true);
  return p;
}

TEST(HostCopies, MakeAnOrderShorterInTheSameMemory) {
  const SynthesisProblem p = HalfRoom(1);
  SynthesisProblem held = p;
  held.offloaded.clear();
  SynthesisOptions options;
  options.rounds = 3;
  options.widest = 64;
  PIPELAB_ASSERT_OK_AND_ASSIGN(const Synthesis without, Synthesize(held, options));
  PIPELAB_ASSERT_OK_AND_ASSIGN(const Synthesis with, Synthesize(p, options));
  EXPECT_LT(with.proof.makespan, without.proof.lower_bound());
  EXPECT_THAT(CheckProof(p, with.proof), IsOk());
}

// The best that a rule makes of a schedule without copies.
TEST(HostCopies, SearchedBeatTheRule) {
  const SynthesisProblem p = HalfRoom(1);
  const std::vector<CatalogueOrder> orders = CatalogueOrders(p);
  ASSERT_FALSE(orders.empty());
  EXPECT_THAT(orders[0].scheme, HasSubstr("copies by rule"));
  SynthesisOptions options;
  options.rounds = 3;
  options.widest = 64;
  PIPELAB_ASSERT_OK_AND_ASSIGN(const Synthesis found, Synthesize(p, options));
  EXPECT_LT(found.proof.makespan, orders[0].makespan);
  EXPECT_THAT(CheckProof(p, found.proof), IsOk());
}

// A scheme that offloads is a start with the copies that it has, in just the memory that it takes.
TEST(HostCopies, SchemesThatOffloadAreStarts) {
  SynthesisProblem p = UnitProblem(4, 8, LoopedDevices(4, 4));
  p.host_copy.assign(16, 1);
  const std::vector<std::vector<bool>> sets = OffloadedInCatalogue(p);
  ASSERT_EQ(sets.size(), 2u);
  EXPECT_EQ(std::count(sets[0].begin(), sets[0].end(), true), 8);   // the first half
  EXPECT_EQ(std::count(sets[1].begin(), sets[1].end(), true), 14);  // all that wait
  const std::vector<std::pair<const char*, int>> schemes = {{"po_h", 8}, {"po_f", 3}};
  for (size_t i = 0; i < 2; ++i) {
    p.offloaded = sets[i];
    p.limits.free.assign(4, Bytes(schemes[i].second));
    bool seen = false;
    for (const CatalogueOrder& order : CatalogueOrders(p)) {
      seen = seen || order.scheme == schemes[i].first;
      EXPECT_THAT(CheckProof(p, {order.words, order.makespan, BestBound(p), ""}), IsOk());
    }
    EXPECT_TRUE(seen) << schemes[i].first;
  }
}

// Copies longer than the passes: the link is what takes the time.
TEST(HostCopies, ASlowLinkIsTheBound) {
  const SynthesisProblem p = HalfRoom(4);
  const Bound bound = BestBound(p);
  EXPECT_EQ(bound.reason, BoundReason::kLink);
  // 16 micro-batches of two copies of 4, behind a forward and before I and W.
  EXPECT_GE(bound.value, 16 * 2 * 4 + 3);
  EXPECT_THAT(ToText(bound), HasSubstr("host link"));
}

TEST(HostCopies, ProofsThatAreWrongAreRefused) {
  SynthesisProblem p = UnitProblem(2, 3, {0, 1});
  p.limits.free.assign(2, Bytes(2));
  p.host_copy.assign(2, 2);
  p.offloaded = {true, false};
  PIPELAB_ASSERT_OK_AND_ASSIGN(const Synthesis found, Synthesize(p, {}));
  const Proof& proof = found.proof;
  ASSERT_THAT(CheckProof(p, proof), IsOk());
  const auto refused = [&p, &proof](const char* why, const std::function<void(Proof*)>& change) {
    Proof wrong = proof;
    change(&wrong);
    EXPECT_THAT(CheckProof(p, wrong), StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr(why)));
  };
  const Symbol out = SymbolOf(0, kCopyO), back = SymbolOf(0, kCopyL);
  const auto remove = [](std::vector<Symbol>* word, Symbol symbol) {
    word->erase(std::find(word->begin(), word->end(), symbol));
  };
  refused("", [&](Proof* w) { remove(&w->words[0], out); });
  refused("copies out", [&](Proof* w) { remove(&w->words[0], back); });
  refused("copies out", [&](Proof* w) { w->words[1].push_back(SymbolOf(1, kCopyO)); });
  refused("copies out", [&](Proof* w) {  // it comes back behind the backward
    remove(&w->words[0], back);
    w->words[0].push_back(back);
  });
  refused("bytes", [&](Proof* w) {  // three forwards, and room for two
    std::vector<Symbol> word(3, SymbolOf(0, kPassF));
    for (const Symbol symbol : {out, back, SymbolOf(0, kPassI), SymbolOf(0, kPassW)}) {
      word.insert(word.end(), 3, symbol);
    }
    w->words[0] = word;
  });
  refused("the order takes", [](Proof* w) { --w->makespan; });
  SynthesisProblem slow = p;
  slow.host_copy[0] = 5;
  EXPECT_FALSE(CheckProof(slow, proof).ok());
  // The link's load, and more of it than there is.
  Bound link = BestBound(HalfRoom(4));
  const OrderWords words = CatalogueOrders(HalfRoom(4))[0].words;
  const int64_t makespan = WordEvaluator(HalfRoom(4)).Makespan(words);
  EXPECT_THAT(CheckProof(HalfRoom(4), {words, makespan, link, ""}), IsOk());
  ++link.work;
  ++link.value;
  EXPECT_THAT(CheckProof(HalfRoom(4), {words, makespan, link, ""}),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("bound (link): the work")));
}

TEST(HostCopies, AreRefusedWithoutTimesAndWithRecomputation) {
  SynthesisProblem p = HalfRoom(1);
  p.host_copy.clear();
  EXPECT_THAT(CheckProblem(p), StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("copies")));
  p = HalfRoom(1);
  p.recomputed.assign(8, true);
  EXPECT_THAT(CheckProblem(p), StatusIs(absl::StatusCode::kInvalidArgument,
                                        HasSubstr("stage 0 is offloaded and recomputed")));
}

}  // namespace
}  // namespace pipelab
