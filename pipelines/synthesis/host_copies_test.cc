// Copies to the host and back, of some micro-batches, as a part of the order: brute force, bounds,
// proofs, the schemes.
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
#include "pipelines/synthesis/heads.h"
#include "pipelines/synthesis/problem.h"
#include "pipelines/synthesis/synthesis_testing.h"
#include "pipelines/synthesis/synthesize.h"
#include "tools/base/status_matchers.h"

namespace pipelab {
namespace {

using testing::HasSubstr;

TEST(HostCopies, ExactSearchIsBruteForce) {
  struct Shape {
    std::vector<int> placement;
    int micro_batches, slices;
  };
  const std::vector<Shape> shapes = {{{0, 1}, 2, 1},       {{0}, 3, 1},    {{0, 1, 2}, 2, 1},
                                     {{0, 1, 1, 0}, 1, 1}, {{0, 0}, 1, 1}, {{0, 1}, 1, 2},
                                     {{0}, 1, 3},          {{0, 1}, 1, 3}, {{0, 1, 2}, 1, 2}};
  int feasible = 0, some = 0, sliced = 0, needed = 0;
  for (size_t shape = 0; shape < shapes.size(); ++shape) {
    const auto& [placement, micro_batches, slices] = shapes[shape];
    const int devices = 1 + *std::max_element(placement.begin(), placement.end());
    for (uint64_t seed = 0; seed < (slices == 1 ? 16 : 24); ++seed) {
      SynthesisProblem p =
          slices == 1 ? RandomCopies(seed, devices, micro_batches, placement)
                      : RandomSlicedCopies(seed, devices, micro_batches, slices, placement);
      // Less than all slices take.
      if (slices > 2) p.limits.free.assign(devices, Bytes(6 + static_cast<int64_t>(seed % 5)));
      if (!CheckProblem(p).ok()) continue;
      const int64_t least = ShortestOfAll(p);
      const Heads heads = ComputeHeads(p, /*memory=*/true);
      ExactOptions options;
      options.shorter_than = kNoMakespan;
      const ExactResult found = SearchExactly(p, heads, options);
      ASSERT_TRUE(found.complete);
      EXPECT_EQ(found.makespan, least) << seed << " of shape " << shape;
      if (least == kNoMakespan) continue;
      ++(slices == 1 ? feasible : sliced);
      const SentSet all = EvenlySent(p, 1), none = EvenlySent(p, 0);
      const int64_t without = ShortestOfAll(p, &none);
      needed += slices > 1 && least < without ? 1 : 0;
      some += slices == 1 && least < std::min(ShortestOfAll(p, &all), without) ? 1 : 0;
      const Bound bound = BestBound(p);
      EXPECT_LE(bound.value, least) << seed << " " << ToText(bound);
      EXPECT_THAT(CheckProof(p, {found.words, found.makespan, bound, found.log}), IsOk())
          << seed << " of shape " << shape;
    }
  }
  EXPECT_GT(feasible, 50);
  EXPECT_GT(sliced, 50);
  EXPECT_GT(some, 0);    // where neither all nor none at the host is the shortest
  EXPECT_GT(needed, 5);  // of slices, where copies make an order shorter or fit
}

// Beams on larger ones: what they give is an order that the simulator agrees on.
TEST(HostCopies, OrdersOfBeamsAndTheirBoundsHold) {
  int found = 0, sliced = 0, copied = 0;
  for (uint64_t seed = 0; seed < 40; ++seed) {
    const int slices = 1 + static_cast<int>(seed / 2 % 4);
    const std::vector<int> placed = ZigZagDevices(4, 1 + seed % 2);
    SynthesisProblem p = slices == 1 ? RandomCopies(seed, 4, 9, placed)
                                     : RandomSlicedCopies(seed, 4, 5, slices, placed);
    for (int64_t& copy : p.host_copy) copy *= seed % 3 == 0 ? 4 : 1;
    if (!CheckProblem(p).ok()) continue;
    const SentSet every_second = EvenlySent(p, 0.5);
    for (const SentSet* sent : {static_cast<const SentSet*>(nullptr), &every_second}) {
      BeamOptions beam;
      beam.lead = static_cast<double>(seed % 3);
      beam.sent = sent;
      const OrderWords words = BeamSearch(p, ComputeHeads(p, true), beam);
      if (words.empty()) continue;
      ++(slices == 1 ? found : sliced);
      copied += slices > 1 && std::any_of(words[0].begin(), words[0].end(), IsCopy) ? 1 : 0;
      if (sent != nullptr) {
        EXPECT_EQ(SentIn(p, words), *sent);
      }
      for (int d = 0; d < 4; ++d) EXPECT_TRUE(IsWordOf(p, d, words[d])) << seed;
      const Bound bound = BestBound(p);
      EXPECT_THAT(CheckProof(p, {words, WordEvaluator(p).Makespan(words), bound, ""}), IsOk())
          << seed;
      EXPECT_EQ(*WordsOf(p, ScheduleOf(p, words)), words);
    }
  }
  EXPECT_GT(found, 12);
  EXPECT_GT(sliced, 20);
  EXPECT_GT(copied, 6);
}

// What the exact search closes, check_proof closes, too: larger ones than all orders are known of.
TEST(HostCopies, TreesOfSlicesAreFollowed) {
  int trees = 0;
  for (uint64_t seed = 0; seed < 24; ++seed) {
    const std::vector<std::vector<int>> placements = {{0, 1, 0}, {0, 1, 1, 0}, {0, 1, 2}};
    const SynthesisProblem p = RandomSlicedCopies(seed, seed % 3 == 2 ? 3 : 2,
                                                  seed % 3 == 2 ? 2 : 1, 2, placements[seed % 3]);
    if (!CheckProblem(p).ok()) continue;
    ExactOptions options;
    options.shorter_than = kNoMakespan;
    options.most_nodes = 20000;
    const ExactResult found = SearchExactly(p, ComputeHeads(p, /*memory=*/true), options);
    if (!found.complete || found.words.empty()) continue;
    ++trees;
    EXPECT_THAT(CheckProof(p, {found.words, found.makespan, BestBound(p), found.log}), IsOk())
        << seed;
  }
  EXPECT_GT(trees, 6);
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
    p.may_offload = sets[i];
    p.limits.free.assign(4, Bytes(schemes[i].second));
    bool seen = false;
    for (const CatalogueOrder& order : CatalogueOrders(p)) {
      seen = seen || order.scheme == schemes[i].first;
      EXPECT_THAT(CheckProof(p, {order.words, order.makespan, BestBound(p), ""}), IsOk());
    }
    EXPECT_TRUE(seen) << schemes[i].first;
  }
}

// What the link cannot copy in the time is held.
TEST(HostCopies, TheSlowerTheLinkTheHigherTheBound) {
  SynthesisProblem none = HalfRoom(1, 64);
  none.may_offload.clear();
  const Bound without = BestBound(none);
  std::vector<int64_t> values;
  for (const int64_t copy : {1, 2, 4, 7}) values.push_back(BestBound(HalfRoom(copy, 64)).value);
  EXPECT_TRUE(std::is_sorted(values.begin(), values.end()));
  EXPECT_LT(values[0], values[2]);
  EXPECT_LE(values[3], without.value);
}

TEST(HostCopies, ProofsThatAreWrongAreRefused) {
  SynthesisProblem p = UnitProblem(2, 3, {0, 1});
  p.limits.free.assign(2, Bytes(2));
  p.host_copy.assign(2, 2);
  p.may_offload = {true, false};
  const Heads heads = ComputeHeads(p, /*memory=*/true);
  const SentSet all = EvenlySent(p, 1);
  BeamOptions beam;
  beam.sent = &all;
  Proof proof;
  proof.words = BeamSearch(p, heads, beam);
  proof.makespan = WordEvaluator(p).Makespan(proof.words);
  proof.bound = BestBound(p);
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
  refused("copies out", [&](Proof* w) {  // it stays, and is copied
    std::replace(w->words[0].begin(), w->words[0].end(), SymbolOf(0, kSentF), SymbolOf(0, kPassF));
  });
  refused("copies out", [&](Proof* w) {  // a stage that may not
    std::replace(w->words[1].begin(), w->words[1].end(), SymbolOf(1, kPassF), SymbolOf(1, kSentF));
  });
  refused("copies out", [&](Proof* w) {  // it comes back behind the backward
    remove(&w->words[0], back);
    w->words[0].push_back(back);
  });
  refused("bytes", [&](Proof* w) {  // three forwards, and room for two
    std::vector<Symbol> word(3, SymbolOf(0, kSentF));
    for (const Symbol symbol : {out, back, SymbolOf(0, kPassI), SymbolOf(0, kPassW)}) {
      word.insert(word.end(), 3, symbol);
    }
    w->words[0] = word;
  });
  refused("the order takes", [](Proof* w) { --w->makespan; });
  SynthesisProblem slow = p;
  slow.host_copy[0] = 5;
  EXPECT_FALSE(CheckProof(slow, proof).ok());
  // What is held and copied, and more of it than there is.
  const SynthesisProblem half = HalfRoom(4, 64);
  Proof held;
  held.words = BeamSearch(half, ComputeHeads(half, true), {});
  ASSERT_FALSE(held.words.empty());
  held.makespan = WordEvaluator(half).Makespan(held.words);
  held.bound = BestBound(half);
  ASSERT_EQ(held.bound.reason, BoundReason::kHolding);
  EXPECT_THAT(CheckProof(half, held), IsOk());
  held.bound.work += 2;
  held.bound.value += 2;
  EXPECT_THAT(CheckProof(half, held),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("bound (holding): the time")));
}

// Slices come back in the order of their backwards, when all forwards are over, each behind its own
// copy out; so a word with these symbols says one order.
TEST(HostCopies, SlicesComeBackInTheOrderOfBackwards) {
  SynthesisProblem p = UnitSlices(1, 1, 2, {0});
  p.host_copy = {1, 2};
  p.may_offload = {true};
  const Symbol F = SymbolOf(0, kPassF), S = SymbolOf(0, kSentF), O = SymbolOf(0, kCopyO),
               L = SymbolOf(0, kCopyL), I = SymbolOf(0, kPassI), W = SymbolOf(0, kPassW);
  const auto check = [&p](const std::vector<Symbol>& word) {
    Proof proof;
    proof.words = {word};
    proof.bound = BestBound(p);
    proof.makespan = IsWordOf(p, 0, word) ? WordEvaluator(p).Makespan(proof.words) : 6;
    return CheckProof(p, proof);
  };
  for (const std::vector<Symbol>& word : {std::vector<Symbol>{S, O, S, O, L, I, L, I, W, W},
                                          {S, O, F, I, W, L, I, W},
                                          {F, S, O, L, I, W, I, W},
                                          {S, S, O, O, L, L, I, W, I, W}}) {
    EXPECT_TRUE(IsWordOf(p, 0, word));
    EXPECT_THAT(check(word), IsOk());
  }
  for (const std::vector<Symbol>& word :
       {std::vector<Symbol>{S, O, L, S, O, L, I, I, W, W},  // a forward is not over
        {S, S, O, L, O, I, W, L, I, W},                     // of the slice that is not out
        {F, S, O, I, W, L, I, W},                           // behind its backward
        {S, O, F, L, I, I, W, W, L}}) {
    EXPECT_FALSE(IsWordOf(p, 0, word));
    EXPECT_THAT(check(word),
                StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("copies out or back")));
  }
}

// A log that looks at no copies proves nothing about orders with some, nor do parts of one.
TEST(HostCopies, TreesThatAreWrongAreRefused) {
  SynthesisProblem p = UnitProblem(2, 3, {0, 1});
  p.limits.free.assign(2, Bytes(1));
  p.host_copy.assign(2, 1);
  p.may_offload = {true, false};
  SynthesisProblem none = p;
  none.may_offload.clear();
  ExactOptions options;
  options.shorter_than = kNoMakespan;
  const ExactResult found = SearchExactly(p, ComputeHeads(p, true), options);
  const ExactResult without = SearchExactly(none, ComputeHeads(none, true), options);
  ASSERT_TRUE(found.complete && without.complete);
  Proof proof = {found.words, found.makespan, BestBound(p), found.log};
  ASSERT_THAT(CheckProof(p, proof), IsOk());
  proof.log = without.log;
  EXPECT_THAT(CheckProof(p, proof),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("node")));
  int changed = 0;
  for (size_t at = 0; at < found.log.size(); ++at) {
    if (found.log[at] == kProofStuck) continue;
    proof.log = found.log;
    proof.log[at] = kProofStuck;
    EXPECT_FALSE(CheckProof(p, proof).ok()) << at;
    ++changed;
  }
  EXPECT_GT(changed, 10);
}

TEST(HostCopies, AreRefusedWithoutTimesAndWithRecomputation) {
  SynthesisProblem p = HalfRoom(1);
  p.host_copy.clear();
  EXPECT_THAT(CheckProblem(p), StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("copies")));
  p = HalfRoom(1);
  p.recomputed.assign(8, true);
  EXPECT_THAT(CheckProblem(p), StatusIs(absl::StatusCode::kInvalidArgument,
                                        HasSubstr("stage 0 is recomputed and may offload")));
}

}  // namespace
}  // namespace pipelab
