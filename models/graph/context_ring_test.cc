#include "models/graph/context_ring.h"

#include <algorithm>
#include <set>
#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "models/graph/context_part.h"

namespace pipelab {
namespace {

int64_t Number(int64_t parts, int64_t part, int64_t chunk) {
  return chunk == 0 ? part : 2 * parts - 1 - part;
}

TEST(ContextRing, WithoutAWindowKeysGoAllTheWayRound) {
  for (const bool balanced : {false, true}) {
    const std::vector<ContextStep> steps = RingSteps({4, 0, balanced}, /*chunk=*/8, /*window=*/0);
    ASSERT_EQ(steps.size(), 4);
    int64_t forward = 0, backward = 1;  // the last one, home
    for (int64_t i = 0; i < 4; ++i) {
      EXPECT_EQ(steps[i].shift, i);
      EXPECT_EQ(steps[i].keys, i == 3 ? 1 : 2);
      EXPECT_EQ(steps[i].last, i == 3);
      forward += steps[i].forward_hops;
      backward += steps[i].backward_hops;
    }
    EXPECT_EQ(forward, 3);
    EXPECT_EQ(backward, 6);
  }
  EXPECT_EQ(RingSteps({1, 0, true}, 8, 0).size(), 1);
}

// By brute force, token by token: every pair that a window shows is in one step, no hop is left to
// go whose keys and those behind them nobody needs, and the queries that see some are the first.
TEST(ContextRing, StepsHaveThePairsThatWindowsShow) {
  constexpr int64_t kChunk = 3;
  for (const int64_t parts : {2, 3, 4, 6, 8}) {
    for (int64_t window = 1; window <= 2 * parts * kChunk; ++window) {
      const std::vector<ContextStep> steps = RingSteps({parts, 0, true}, kChunk, window);
      std::set<std::pair<int64_t, int64_t>> seen;
      std::vector<int64_t> pairs_of(steps.size());
      for (size_t i = 0; i < steps.size(); ++i) {
        for (int64_t part = 0; part < parts; ++part) {
          const int64_t from = ((part - steps[i].shift) % parts + parts) % parts;
          for (const int64_t q : {0, 1}) {
            for (const int64_t k : {0, 1}) {
              const int64_t queries = Number(parts, part, q), keys = Number(parts, from, k);
              const int64_t some = SeeingQueries(queries, keys, kChunk, window);
              for (int64_t row = 0; row < kChunk; ++row) {
                const int64_t query = queries * kChunk + row, first = keys * kChunk;
                const int64_t last_key = std::min(query, first + kChunk - 1);
                const bool sees = last_key >= first && query - last_key < window;
                EXPECT_EQ(row < some, sees) << queries << " " << keys << " " << row;
                for (int64_t key = first; key <= last_key; ++key) {
                  if (query - key >= window) continue;
                  EXPECT_TRUE(seen.insert({query, key}).second);
                  ++pairs_of[i];
                }
              }
            }
          }
        }
      }
      int64_t all = 0;
      for (int64_t query = 0; query < 2 * parts * kChunk; ++query) {
        all += std::min(query + 1, window);
      }
      EXPECT_EQ(static_cast<int64_t>(seen.size()), all) << parts << " " << window;
      for (size_t i = 0; i < steps.size(); ++i) {
        if (steps.back().shift >= 0) continue;
        EXPECT_GT(pairs_of[i], 0) << parts << " " << window;
      }
      EXPECT_LE(static_cast<int64_t>(steps.size()), parts);
    }
  }
  EXPECT_EQ(RingSteps({8, 0, true}, 100, 1).size(), 1);
  EXPECT_EQ(RingSteps({8, 0, true}, 100, 101).size(), 3);
  EXPECT_EQ(RingSteps({8, 0, true}, 100, 102).size(), 5);
}

}  // namespace
}  // namespace pipelab
