#include "pipelines/planners/downsets.h"

#include <cstdint>
#include <set>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tools/base/rng.h"

namespace pipelab {
namespace {

using Needs = std::vector<std::vector<int>>;

// `chains` chains of `length` between a common first and last node.
Needs Branches(int chains, int length) {
  Needs needs(static_cast<size_t>(chains) * length + 2);
  const int last = static_cast<int>(needs.size()) - 1;
  for (int c = 0; c < chains; ++c) {
    for (int i = 0; i < length; ++i) {
      const int v = 1 + c * length + i;
      needs[v] = {i == 0 ? 0 : v - 1};
    }
    needs[last].push_back(c * length + length);
  }
  return needs;
}

TEST(Downsets, CountsBranches) {
  // Any reach on each chain, and without the first node, with the last.
  for (const auto& [chains, length] : {std::pair<int, int>{1, 300}, {2, 8}, {3, 24}, {9, 2}}) {
    int expected = 1;
    for (int c = 0; c < chains; ++c) expected *= length + 1;
    expected += 2;
    const auto sets = Downsets::Make(Branches(chains, length), expected);
    ASSERT_TRUE(sets.has_value()) << chains << " " << length;
    EXPECT_EQ(sets->size(), expected);
    EXPECT_FALSE(Downsets::Make(Branches(chains, length), expected - 1).has_value());
  }
}

// Without memory for each pair of nodes, which would be 2^33 bytes.
TEST(Downsets, TooManyNodesAreRefusedAtOnce) {
  EXPECT_FALSE(Downsets::Make(Needs(1 << 18), 1 << 30).has_value());
  EXPECT_FALSE(Downsets::Make(Branches(1, 1 << 18), 1 << 18).has_value());
  EXPECT_FALSE(Downsets::Make(Branches(1 << 18, 1), 1 << 30).has_value());
  EXPECT_FALSE(Downsets::Make(Branches(1, 8), 10).has_value());
  EXPECT_TRUE(Downsets::Make(Branches(1, 8), 11).has_value());
}

// All subsets of random DAGs, one by one.
TEST(Downsets, AreThoseOfBruteForce) {
  for (int seed = 0; seed < 200; ++seed) {
    const CounterRng rng(seed, "downsets");
    const int n = 1 + static_cast<int>(rng.Below(0, 10));
    Needs needs(n);
    for (int v = 0; v < n; ++v) {
      for (int u = 0; u < v; ++u) {
        // Nodes are not numbered in their order.
        if (rng.Below(1 + v * n + u, 4) == 0) needs[n - 1 - v].push_back(n - 1 - u);
      }
    }
    std::set<uint64_t> expected;
    for (uint64_t set = 0; set < (uint64_t{1} << n); ++set) {
      bool closed = true;
      for (int v = 0; v < n; ++v) {
        for (int u : needs[v]) closed = closed && (((set >> v) & 1) == 0 || ((set >> u) & 1) == 1);
      }
      if (closed) expected.insert(set);
    }
    const auto sets = Downsets::Make(needs, 1 << n);
    ASSERT_TRUE(sets.has_value());
    std::vector<uint64_t> bits;
    for (int s = 0; s < sets->size(); ++s) {
      uint64_t set = 0;
      for (int v = 0; v < n; ++v) set |= uint64_t{sets->Has(s, v)} << v;
      bits.push_back(set);
      if (s > 0) {
        EXPECT_EQ(set, bits[sets->parent(s)] | (uint64_t{1} << sets->added(s)));
      }
    }
    EXPECT_EQ(std::set<uint64_t>(bits.begin(), bits.end()), expected) << "seed " << seed;
    EXPECT_EQ(bits.size(), expected.size());
    EXPECT_EQ(bits.front(), 0u);
    EXPECT_EQ(bits.back(), (uint64_t{1} << n) - 1);
    for (int a = 0; a < sets->size(); ++a) {
      for (int b = 0; b < sets->size(); ++b) {
        EXPECT_EQ(sets->Includes(a, b), (bits[b] & ~bits[a]) == 0);
      }
    }
  }
}

}  // namespace
}  // namespace pipelab
