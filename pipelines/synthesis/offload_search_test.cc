// Searches for orders whose micro-batches may go to the host: what goes there, copies as needed,
// local search.
#include <algorithm>
#include <cstdint>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "pipelines/synthesis/beam.h"
#include "pipelines/synthesis/bound.h"
#include "pipelines/synthesis/check_proof.h"
#include "pipelines/synthesis/evaluate.h"
#include "pipelines/synthesis/exact.h"
#include "pipelines/synthesis/heads.h"
#include "pipelines/synthesis/local_search.h"
#include "pipelines/synthesis/place_copies.h"
#include "pipelines/synthesis/problem.h"
#include "pipelines/synthesis/synthesis_testing.h"
#include "pipelines/synthesis/synthesize.h"
#include "tools/base/status_matchers.h"

namespace pipelab {
namespace {

TEST(OffloadSearch, MakeAnOrderShorterInTheSameMemory) {
  const SynthesisProblem p = HalfRoom(1);
  SynthesisProblem held = p;
  held.may_offload.clear();
  SynthesisOptions options;
  options.rounds = 3;
  options.widest = 64;
  PIPELAB_ASSERT_OK_AND_ASSIGN(const Synthesis without, Synthesize(held, options));
  PIPELAB_ASSERT_OK_AND_ASSIGN(const Synthesis with, Synthesize(p, options));
  EXPECT_LT(with.proof.makespan, without.proof.lower_bound());
  EXPECT_THAT(CheckProof(p, with.proof), IsOk());
}

// Never longer than with all at the host, or none, in searches as long; and here shorter.
TEST(OffloadSearch, NeitherAllNorNoneIsTheShortest) {
  const SynthesisProblem p = HalfRoom(2);
  SynthesisOptions options;
  options.rounds = 2;
  options.widest = 8;
  PIPELAB_ASSERT_OK_AND_ASSIGN(const Synthesis found, Synthesize(p, options));
  EXPECT_THAT(CheckProof(p, found.proof), IsOk());
  for (const double share : {0.0, 0.5, 1.0}) {
    const SentSet sent = EvenlySent(p, share);
    for (const int width : {1, 8}) {
      BeamOptions beam;
      beam.width = width;
      beam.sent = &sent;
      const OrderWords words = BeamSearch(p, ComputeHeads(p, true), beam);
      if (words.empty()) continue;
      EXPECT_LE(found.proof.makespan, WordEvaluator(p).Makespan(words)) << share << " " << width;
    }
  }
  int goes = 0, stays = 0;  // of the stages that may offload
  const SentSet sent = SentIn(p, found.proof.words);
  for (int s = 0; s < 4; ++s) {
    for (const bool is_sent : sent[s]) ++(is_sent ? goes : stays);
  }
  EXPECT_GT(goes, 0);
  EXPECT_GT(stays, 0);
}

// An order that needs more room than there is, with the copies that make it.
TEST(OffloadSearch, AreMadeAsNeeded) {
  int fitted = 0, sliced = 0;
  for (uint64_t seed = 0; seed < 120; ++seed) {
    const std::vector<int> placed = LoopedDevices(3, 1 + seed % 2);
    SynthesisProblem p =
        seed < 40 ? RandomCopies(seed, 3, 6, placed) : RandomSlicedCopies(seed, 3, 4, 2, placed);
    if (!CheckProblem(p).ok() || p.limits.free.empty()) continue;
    SynthesisProblem more = p;
    more.may_offload.clear();
    for (Bytes& free : more.limits.free) free = free + free;
    const OrderWords passes = BeamSearch(more, ComputeHeads(more, true), {});
    if (passes.empty()) continue;
    bool fits = true;
    for (int d = 0; d < 3; ++d) fits = fits && FitsMemory(p, d, passes[d]);
    const OrderWords words = CopiesAsNeeded(p, passes, static_cast<double>(seed % 2));
    if (fits) {
      EXPECT_EQ(words, passes) << seed;  // nothing is short
    }
    if (fits || words.empty()) continue;
    ++(seed < 40 ? fitted : sliced);
    const int64_t makespan = WordEvaluator(p).Makespan(words);
    ASSERT_LT(makespan, kNoMakespan) << seed;
    EXPECT_THAT(CheckProof(p, {words, makespan, BestBound(p), ""}), IsOk()) << seed;
    OrderWords without = words;
    for (auto& word : without) {
      word.erase(std::remove_if(word.begin(), word.end(), IsCopy), word.end());
      std::transform(word.begin(), word.end(), word.begin(), CountedAs);
    }
    EXPECT_EQ(without, passes) << seed;
  }
  EXPECT_GT(fitted, 5);
  EXPECT_GT(sliced, 5);
}

// From one micro-batch after the other on: valid, no longer at any time, and the shortest there is
// for most small problems.
TEST(OffloadSearch, LocalSearchLeadsToShortOrders) {
  int shortest = 0, all = 0;
  for (uint64_t seed = 0; seed < 50; ++seed) {
    const SynthesisProblem p =
        seed < 30 ? RandomCopies(seed, 2, 3, {0, 1}) : RandomSlicedCopies(seed, 2, 2, 2, {0, 1});
    if (!CheckProblem(p).ok()) continue;
    OrderWords words(2);
    for (int m = 0; m < p.micro_batches; ++m) {
      for (int s = 0; s < 2; ++s) {
        words[s].insert(words[s].end(), p.slices, SymbolOf(s, kPassF));
        for (int slice = 0; slice < p.slices; ++slice) {
          for (int kind = kPassI; kind < p.kinds(); ++kind) words[s].push_back(SymbolOf(s, kind));
        }
      }
    }
    LocalSearchOptions options;
    options.moves = 4000;
    const OrderWords found = LocalSearch(p, words, options);
    EXPECT_EQ(found, LocalSearch(p, words, options));
    const int64_t makespan = WordEvaluator(p).Makespan(found);
    EXPECT_LE(makespan, WordEvaluator(p).Makespan(words));
    EXPECT_THAT(CheckProof(p, {found, makespan, BestBound(p), ""}), IsOk()) << seed;
    ExactOptions exact;
    exact.shorter_than = kNoMakespan;
    const ExactResult least = SearchExactly(p, ComputeHeads(p, true), exact);
    ASSERT_TRUE(least.complete);
    EXPECT_GE(makespan, least.makespan);
    ++all;
    shortest += makespan == least.makespan ? 1 : 0;
  }
  EXPECT_GT(all, 20);
  EXPECT_GT(shortest, all * 2 / 3);
}

}  // namespace
}  // namespace pipelab
